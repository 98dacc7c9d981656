"""The page of a comparison of 48 rows in headless Chromium: size, time, answers, three widths."""

import shutil
import time
from pathlib import Path

import pytest

from sim.compare import main

pytest.importorskip("selenium")
pytestmark = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")), reason="no Chromium"
)
ASKED = ("-m", "workload.jobs=40", "hydra.sweep.dir=swept")
WIDE = ("policy=easy,sa,sa_easy,efficiency", "predictor=amdahl,oracle,user_estimate",
        "seed=1,2,3,4")  # fmt: skip
MOST_BYTES, MOST_SECONDS = 5_000_000, 2.0
ANSWERS = {
    "best-sentence": "Best: ",
    "tile-best": "mean response of",
    "tile-foresight": "with perfect predictions",
    "tile-losers": "of the jobs respond later",
    "rests-on": "This rests on: ",
    "recorded": "No real machine's schedule of these jobs is recorded.",
}
"""What answers the five questions that a reader has."""
OPEN = "const t = performance.getEntriesByType('navigation')[0];return t.loadEventEnd - t.startTime"


@pytest.fixture
def driver(tmp_path):
    from scripts.check_page import browser

    found = browser(tmp_path / "profile")
    yield found
    found.quit()


def mouse(driver, kind, x, y):
    event = {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)


def test_48_rows_open_at_once_and_answer_five_questions(command, driver):
    from scripts.check_page import at_every_size, check

    assert command(*ASKED, *WIDE).status == 0
    assert main(["swept"]) == 0
    page = Path("swept/comparison.html")
    assert page.stat().st_size <= MOST_BYTES
    seconds = []
    for _ in range(3):
        driver.get(page.resolve().as_uri())
        time.sleep(0.2)
        seconds.append(driver.execute_script(OPEN) / 1000)
    assert sorted(seconds)[1] <= MOST_SECONDS
    for name, words in ANSWERS.items():
        assert words in driver.find_element("id", name).text, name
    at_every_size(page, driver)
    assert "no error in the console" in check(page, driver, None)


def test_a_table_is_sorted_by_a_real_click_and_by_the_keyboard(command, driver):
    from selenium.webdriver.common.keys import Keys

    assert command(*ASKED, "policy=easy,sa", "predictor=oracle").status == 0
    assert main(["swept"]) == 0
    driver.get(Path("swept/comparison.html").resolve().as_uri())
    heads = driver.find_elements("css selector", "#figures thead button")
    head = next(one for one in heads if one.text.startswith("mean response"))
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", head)
    place = driver.execute_script(
        "const r = arguments[0].getBoundingClientRect();"
        "return [r.x + r.width / 2, r.y + r.height / 2]", head
    )  # fmt: skip

    def values():
        cells = f"#figures tbody td:nth-child({heads.index(head) + 1})"
        found = driver.find_elements("css selector", cells)
        return [float(one.get_attribute("data-value")) for one in found]

    mouse(driver, "mousePressed", *place)
    mouse(driver, "mouseReleased", *place)
    assert values() == sorted(values())
    assert len(set(values())) > 1
    head.send_keys(Keys.ENTER)
    assert values() == sorted(values(), reverse=True)
