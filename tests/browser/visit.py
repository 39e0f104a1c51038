"""A tab of a browser, and what went wrong in it."""

from playwright.sync_api import ConsoleMessage, Page


class Visit:
    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        self._address = address
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def go(self, path: str) -> Page:
        self.page.goto(self._address + path)
        return self.page

    @property
    def path(self) -> str:
        return self.page.url.removeprefix(self._address)

    def settle(self, path: str) -> None:
        """Wait until this path is shown, and htmx has put the page in its place."""
        self.page.wait_for_url(self._address + path)
        self.page.wait_for_function("where => document.querySelector('main').dataset.canonical === where", arg=path)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and "status of 404" not in message.text:  # pages that should be missing
            self.complaints.append(message.text)
