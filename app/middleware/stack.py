"""What stands around the finished app, outermost first. add_middleware would not do: it does not see unhandled 500s."""

from starlette.types import ASGIApp

from app.metrics import Metrics
from app.middleware.bodies import BodyLimit
from app.middleware.failures import Failures, HeadAsGet
from app.middleware.request_log import RequestLog
from app.middleware.security import AddressCheck, ErrorPage, SecurityHeaders
from app.settings import Settings


def wrap_app(app: ASGIApp, settings: Settings, metrics: Metrics, error_page: ErrorPage) -> ASGIApp:
    app = BodyLimit(app, settings.body_limit, settings.body_seconds)
    app = AddressCheck(app, settings.url_limit, error_page)
    app = Failures(app, error_page)
    app = RequestLog(app, metrics, settings.access_log)
    app = HeadAsGet(app)
    return SecurityHeaders(app)
