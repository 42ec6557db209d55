"""What goes wrong, in one sentence that says what to do."""


class SalonError(Exception):
    """Something a user can mend. `exit_code` is the command's, where a command said it."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code
