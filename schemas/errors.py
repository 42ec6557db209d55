"""The error tree: one sentence a class, and the exit code the command line gives it; and what a refusal to write asks for."""

import errno

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
NOT_WRITABLE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
NOT_A_FOLDER = frozenset({errno.ENOTDIR, errno.EISDIR})


def remedy(error: OSError) -> str:
    """What to do where the operating system refuses to write."""
    if error.errno in NOT_WRITABLE:
        return "the place is not writable: mount it for writing, get write permission, or name another place"
    if error.errno in NOT_A_FOLDER:
        return "a file is where a folder should be, or the other way round: move it away"
    return "free space or repair the disk"


class SalonError(Exception):
    """Anything Salon stops for; its text says what, which value, what is allowed and what to do next."""

    exit_code = 3
    may_pass = False  # whether the same work may succeed a little later


class InputError(SalonError):
    """The user's input cannot be used as it is."""

    exit_code = 2


class BenchmarkFileError(InputError):
    """The benchmark file is not valid; the message names the key and the line."""


class RubricError(InputError):
    """A rubric folder is not valid, or is not there."""


class SourceError(InputError):
    """A dataset source cannot be read at all, or lacks a column that is needed."""


class NothingToJudgeError(InputError):
    """No sample of the benchmark can be asked about under a rubric. `lacking`: the columns that all of them lack."""

    lacking: frozenset[str] = frozenset()


class MissingKeyError(InputError):
    """A remote judge is to be asked and the environment variable that names its key is not set."""


class GateBlockedError(SalonError):
    """A blocking data check failed, so nothing was published."""

    exit_code = 1


class ProviderError(SalonError):
    """The judge's provider is down or refuses the account; what was paid for is kept and the run can be resumed."""

    may_pass = True
    pause_s: float | None = None  # what the provider asks to be left alone for
    judge_id: str = ""  # whose, where it is known


class LastingProviderError(ProviderError):
    """The same work a little later ends the same way."""

    may_pass = False


class PaidAgainError(LastingProviderError):
    """Each further try may be paid for and end the same way: a person has to look first."""


class AccountError(LastingProviderError):
    """The provider does not accept the key, or the account has no credit: trying again does not help."""


class NotThereError(LastingProviderError):
    """Nobody was met at the judge's address in this run: it is wrong, or the server is not started."""


class ProviderDownError(LastingProviderError):
    """The provider answers nothing, or with errors of its own alone: it was waited for, and each time-out may be billed."""


class RejectedError(PaidAgainError):
    """The provider rejects request after request in the same words: what is sent has to change first."""


class MissingInputError(PaidAgainError):
    """The judge says of more than a few requests that it was given nothing to judge: its endpoint may drop pictures."""


class UnreadableError(PaidAgainError):
    """None of the judge's first replies can be read: the prompt, its parameters or the judge have to change first."""


class BatchCancelledError(PaidAgainError):
    """Somebody cancelled a batch at the provider: only who starts a run has its requests billed again."""


class BatchFailedError(PaidAgainError):
    """The provider failed batch after batch as a whole: each further one is uploaded, validated and failed like these."""


class BatchLostError(PaidAgainError):
    """The provider no longer knows a batch that this run handed over: another one might be lost like it, and billed too."""


class JudgeChangedError(PaidAgainError):
    """Another model answers under the judge's name than when the plan was begun."""


class BudgetReachedError(SalonError):
    """max_usd is reached before all was asked; what is whole is published, and the same command goes on."""


class StoreError(SalonError):
    """The lake or the ledger cannot be read or written; what was stored is kept and the run can be resumed."""

    may_pass = True


class RefusedLedgerError(StoreError):
    """The ledger's server does not let this user in, or at its tables: no waiting mends that, and what was paid for is kept."""

    exit_code = InputError.exit_code
    may_pass = False


class CorruptLakeError(StoreError):
    """A stored file is not what its completion marker says it is: it stays so until somebody mends it."""

    may_pass = False


class StoppedError(SalonError):
    """The process was told to stop; what was under way is stored and the run can be resumed."""

    exit_code = 143
