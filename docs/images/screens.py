"""Draw the main pages of `oxx serve`: docs/images/web-*.png.

python docs/images/screens.py
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SEED = "32"
CHOICE = "button.pick:not(:disabled), button.row"


def main() -> None:
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        sys.exit("there is no Chromium: sh tests/install_browser.sh .venv/bin/python")
    command = [sys.executable, "-m", "oxx_env", "serve", "--port", "0", "--seed", SEED]
    with (
        tempfile.TemporaryDirectory() as games,
        subprocess.Popen(
            [*command, "--folder", games], stdout=subprocess.PIPE, text=True
        ) as server,
        sync_playwright() as driver,
    ):
        try:
            assert server.stdout is not None
            found = re.search(r"http://\S+/", server.stdout.readline())
            assert found, "the server did not start"
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            draw(browser, found[0])
            browser.close()
        finally:
            server.terminate()


def draw(browser: Any, url: str) -> None:
    def visit(**options: Any) -> Any:
        context = browser.new_context(**options)
        context.add_init_script(
            "if (location.origin !== 'null') localStorage.setItem('oxx.pace', '\"0\"')"
        )
        page = context.new_page()
        page.goto(url)
        page.wait_for_selector("form")
        page.get_by_label("Your name").fill("Kim")
        return page

    def start(page: Any, moves: int) -> None:
        page.get_by_role("button", name="Start").click()
        for _ in range(moves):
            page.wait_for_selector(CHOICE)
            page.locator(CHOICE).first.click()
            page.wait_for_timeout(250)
        page.wait_for_selector(CHOICE)

    def shoot(page: Any, name: str, **options: Any) -> None:
        page.wait_for_timeout(400)
        page.screenshot(path=FOLDER / f"web-{name}.png", **options)
        shrink(FOLDER / f"web-{name}.png")

    page = visit(viewport={"width": 1100, "height": 980}, color_scheme="light")
    start(page, 8)
    page.keyboard.press("c")
    page.wait_for_selector("#advice")
    shoot(page, "table", full_page=True)
    while not page.query_selector("#result"):
        page.wait_for_selector(f"{CHOICE}, #result")
        if page.query_selector(CHOICE):
            page.locator(CHOICE).first.click()
        page.wait_for_timeout(120)
    page.get_by_role("link", name="Review the match").click()
    page.wait_for_selector("#worst")
    shoot(page, "review", full_page=True)
    page.go_back()
    page.get_by_label("The result").get_by_role("link", name="Replay").click()
    page.wait_for_selector("#step")
    page.focus("#main")
    for _ in range(6):
        page.keyboard.press("ArrowDown")
        page.wait_for_timeout(60)
    shoot(page, "replay", full_page=True)
    page.goto(f"{url}#/deck")
    page.wait_for_selector("#heads")
    for heads in ("bby", "g", "rk", "www", "yg", "b", "kkr"):
        page.keyboard.type(heads)
        page.keyboard.press("Enter")
    page.keyboard.type("bgw")
    shoot(page, "deck")

    shared = visit(viewport={"width": 1100, "height": 700}, color_scheme="light")
    shared.get_by_text("Seat by seat").click()
    shared.get_by_label("Seat 2").select_option("here")
    shared.get_by_label("Name of player 3").fill("Ben")
    shared.get_by_role("button", name="Start").click()
    shared.click("#uncover")
    shared.click(CHOICE)
    shared.wait_for_selector("#uncover:has-text('Ben')")
    shoot(shared, "curtain", full_page=True)

    phone = visit(
        viewport={"width": 380, "height": 820},
        color_scheme="dark",
        has_touch=True,
        is_mobile=True,
        device_scale_factor=2,
    )
    start(phone, 6)
    shoot(phone, "phone")


def shrink(path: Path) -> None:
    """Fewer colors: a third of the size, and nothing to see of it."""
    from PIL import Image

    with Image.open(path) as image:
        image.convert("RGB").quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    main()
