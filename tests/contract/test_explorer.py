"""A schedule of 200,000 jobs to look into, in headless Chromium: hover, zoom, pan, frames."""

import shutil
import time

import pytest

from sim.plot import main

pytest.importorskip("selenium")
pytest.importorskip("plotly")
pytestmark = pytest.mark.skipif(
    not (shutil.which("chromium") and shutil.which("chromedriver")), reason="no Chromium"
)
ASKED = ("workload.jobs=200000", "workload.load=0.7", "policy=easy", "predictor=user_estimate",
         "moldability=none", "baseline=null", "hydra.run.dir=explored")  # fmt: skip
LEAST_FRAMES = 30.0
"""A second, while a drag pans."""
MOST_BYTES = 25_000_000
COUNT = """
window.frames_ = 0; window.going_ = true; window.began_ = performance.now();
const count = () => { window.frames_++; if (window.going_) requestAnimationFrame(count); };
requestAnimationFrame(count);
"""


def until(driver, script, seconds=60.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := driver.execute_script(f"return {script}"):
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds} s: {script}")


def mouse(driver, kind, x, y, held):
    event = {"type": kind, "x": x, "y": y, "button": "left", "buttons": held, "clickCount": 1}
    driver.execute_cdp_cmd("Input.dispatchMouseEvent", event)


@pytest.fixture
def driver(tmp_path):
    from scripts.check_page import browser

    found = browser(tmp_path / "profile")
    yield found
    found.quit()


def test_a_reader_hovers_zooms_and_pans_at_30_frames_a_second(command, driver, tmp_path):
    assert command(*ASKED).status == 0
    assert main([str(tmp_path / "explored"), "explorer"]) == 0
    page = tmp_path / "explored/plots/explorer.html"
    assert page.stat().st_size <= MOST_BYTES
    began = time.monotonic()
    driver.get(page.resolve().as_uri())
    (drawn, *_) = until(driver, "window.moldsim && window.moldsim.drawn()")
    opened = time.monotonic() - began
    place = driver.find_element("id", "plot").rect
    x, y = int(place["x"] + place["width"] / 2), int(place["y"] + 120)
    for step in range(200):
        mouse(driver, "mouseMoved", x + 3 * (step % 100) - 150, y + 40 * (step // 100), 0)
        if "asked for" in driver.find_element("id", "told").text:
            break
    assert "asked for" in driver.find_element("id", "told").text, "no job under the pointer"
    axis = "window.moldsim.plot._fullLayout.xaxis.range.slice()"
    whole = driver.execute_script(f"return {axis}")
    mouse(driver, "mousePressed", x - 200, y, 1)
    mouse(driver, "mouseMoved", x, y + 60, 1)
    mouse(driver, "mouseReleased", x, y + 60, 0)
    time.sleep(1.0)
    low, high = driver.execute_script(f"return {axis}")
    assert high - low < 0.5 * (whole[1] - whole[0]), "a drag zooms"
    driver.execute_async_script(
        "Plotly.relayout(window.moldsim.plot, {dragmode: 'pan', 'xaxis.range': arguments[0]})"
        ".then(arguments[1])", [whole[0], whole[0] + 0.1 * (whole[1] - whole[0])],
    )  # fmt: skip
    driver.execute_script(COUNT)
    mouse(driver, "mousePressed", x, y, 1)
    for step in range(150):
        mouse(driver, "mouseMoved", x - 2 * step, y, 1)
    mouse(driver, "mouseReleased", x - 300, y, 0)
    rate = driver.execute_script(
        "window.going_ = false; return 1000 * window.frames_ / (performance.now() - window.began_)"
    )
    assert driver.execute_script(f"return {axis}")[0] > whole[0], "a drag pans"
    assert rate >= LEAST_FRAMES, f"{rate:.0f} frames a second"
    errors = [entry for entry in driver.get_log("browser") if entry["level"] != "INFO"]
    assert not errors, errors
    asked = [entry["message"] for entry in driver.get_log("performance")
             if '"Network.requestWillBeSent"' in entry["message"]]  # fmt: skip
    assert not [message for message in asked if '"url":"http' in message], "asks the network"
    assert drawn >= 200_000
    assert opened < 30
