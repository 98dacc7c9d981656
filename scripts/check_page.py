"""Load a comparison's page in headless Chromium, use it, and look for errors.

python scripts/check_page.py comparison.html [screenshots/]

Widths of a phone, a laptop and a desk in light and dark: nothing is wider than the page, and at
1,280 x 800 the best, how sure it is, and what perfect predictions would bring are seen at once.
With axe-core (axe-core-python) it looks for what hinders readers. Without Chromium, its
driver or selenium it says so and ends with status 0.
"""

import shutil
import sys
import tempfile
from pathlib import Path

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--window-size=1400,1000", "--force-device-scale-factor=1"),
)


SIZES = ((360, 812), (1280, 800), (1600, 1000))
QUESTIONS = ("best-sentence", "tile-best", "tile-foresight", "tile-losers", "rests-on")
"""Best rule, how sure, with perfect predictors; who loses, how far from the real machine."""


def at_every_size(page, driver):
    """Assert what is seen at three widths in two schemes; return what axe-core finds serious."""
    found = []
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for width, height in SIZES:
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            driver.get(page.resolve().as_uri())
            wide = driver.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width, f"{wide} pixels wide on {width}"
            if width == 1280:
                bottom = (
                    "return document.getElementById(arguments[0]).getBoundingClientRect().bottom"
                )
                for number, name in enumerate(QUESTIONS):
                    seen = driver.execute_script(bottom, name) <= height
                    assert seen or number > 2, f"{name} is not on screen"
                found += serious(driver)
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert not found, found


def serious(driver):
    try:
        import axe_core_python
    except ImportError:
        print("skipped: axe-core is not installed (pip install axe-core-python)")
        return []
    source = next(Path(axe_core_python.__file__).parent.glob("axe*.js"))
    driver.set_script_timeout(120)
    driver.execute_script(source.read_text(encoding="utf-8"))
    result = driver.execute_async_script("axe.run().then(arguments[0])")
    return [
        (one["id"], one["nodes"][0]["html"][:200])
        for one in result["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def browser(profile):
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options, Service(shutil.which("chromedriver")))


def check(page, driver, shots):
    """Use the page; every line is an assertion about what a reader sees."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    at_every_size(page, driver)
    driver.get(page.resolve().as_uri())
    table = driver.find_element(By.ID, "figures")
    rows = lambda: [r for r in table.find_elements(By.CSS_SELECTOR, "tbody tr") if r.is_displayed()]  # noqa: E731
    heads = table.find_elements(By.CSS_SELECTOR, "thead button")
    number = next(i for i, head in enumerate(heads) if head.text.startswith("mean response"))
    total = len(rows())
    assert total > 1, "the table is empty"
    heads[number].click()
    values = [float(r.find_elements(By.TAG_NAME, "td")[number].get_attribute("data-value"))
              for r in rows()]  # fmt: skip
    assert values == sorted(values), "ascending after one click"
    heads[number].click()
    values = [float(r.find_elements(By.TAG_NAME, "td")[number].get_attribute("data-value"))
              for r in rows()]  # fmt: skip
    assert values == sorted(values, reverse=True), "descending after two"
    first = rows()[0].find_elements(By.TAG_NAME, "td")[0].text
    search = driver.find_element(By.ID, "search")
    search.send_keys(first)
    assert 0 < len(rows()) <= total
    search.clear()
    search.send_keys("nothing is called this")
    assert len(rows()) == 0
    for _ in range(30):
        search.send_keys("\b")
    assert len(rows()) == total
    for one in driver.find_elements(By.CSS_SELECTOR, "#filters select"):
        Select(one).select_by_index(1)
        assert 0 < len(rows()) < total, one.text
        Select(one).select_by_index(0)
    pick = driver.find_elements(By.ID, "pick")
    if pick and len(Select(pick[0]).options) > 1:
        Select(pick[0]).select_by_index(1)
        shown = [f.is_displayed() for f in driver.find_elements(By.CSS_SELECTOR, "[data-gantt]")]
        assert shown.count(True) == 1
        assert shown[1]
    images = driver.find_elements(By.TAG_NAME, "img")
    assert images
    for image in images:
        assert image.get_attribute("alt"), "a picture without a text"
        width = driver.execute_script("return arguments[0].naturalWidth", image)
        assert width > 0, image.get_attribute("alt")
    for summary in driver.find_elements(By.CSS_SELECTOR, "figcaption summary"):
        driver.execute_script("arguments[0].click()", summary)
    opened = driver.find_elements(By.CSS_SELECTOR, "details[open] td")
    assert opened, "numbers beside the pictures"
    errors = [entry for entry in driver.get_log("browser") if entry["level"] != "INFO"]
    assert not errors, errors
    asked = [entry["message"] for entry in driver.get_log("performance")
             if '"Network.requestWillBeSent"' in entry["message"]]  # fmt: skip
    assert not [message for message in asked if '"url":"http' in message], "asks the network"
    if shots:
        screenshots(driver, shots)
    return (
        f"{total} rows, {len(images)} pictures, no error in the console, nothing asked of a network"
    )


def screenshots(driver, folder):
    import base64

    folder.mkdir(parents=True, exist_ok=True)
    driver.refresh()
    height = driver.execute_script("return document.documentElement.scrollHeight")
    driver.set_window_size(1400, min(height + 100, 12000))
    driver.save_screenshot(str(folder / "page.png"))
    driver.set_window_size(420, 900)
    driver.save_screenshot(str(folder / "narrow.png"))
    printed = driver.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})
    (folder / "printed.pdf").write_bytes(base64.b64decode(printed["data"]))


def main():
    if not shutil.which("chromium") or not shutil.which("chromedriver"):
        print("skipped: Chromium and chromedriver are not installed")
        return 0
    try:
        import selenium  # noqa: F401
    except ImportError:
        print("skipped: selenium is not installed (pip install '.[extra]')")
        return 0
    shots = Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as profile:
        driver = browser(profile)
        try:
            print(f"{sys.argv[1]}: {check(Path(sys.argv[1]), driver, shots)}")
        finally:
            driver.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main())
