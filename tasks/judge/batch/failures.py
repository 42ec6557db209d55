"""How a call of a Batch API fails, whatever the libraries raised. Calls are client.py, what is done then steps.py."""

from schemas.statuses import ReplyStatus
from tasks.judge.answers import Answer


class CallFailedError(Exception):
    """A call that came to nothing, as an Answer."""

    def __init__(self, answer: Answer, status_code: int | None = None) -> None:
        super().__init__(answer.detail)
        self.answer = answer
        self.is_absent = status_code == 404
        self.is_unsupported = status_code in (404, 405, 501)

    @property
    def may_have_worked(self) -> bool:
        """Whether the provider may have done what was asked, and only its word was lost."""
        lost = (ReplyStatus.UNREACHABLE, ReplyStatus.TIMED_OUT, ReplyStatus.SERVER_ERROR, ReplyStatus.BAD_RESPONSE)
        return self.answer.is_sent and self.answer.status in lost
