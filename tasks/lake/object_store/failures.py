"""What a store's error says, in a line, and what to do about it. Asking again is client.py's, and the library's."""

import re

from tasks.lake.object_store.settings import store_wait_s

DEFAULT_WAIT_S = 30.0
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,60})</Code>")
_IS_REFUSED = re.compile(r"403 Forbidden$|\(AccessDenied\)$")
_WAITED = re.compile(r"after \d+ retries|kind: Timeout")
_LISTED = " (GET and LIST need s3:GetObject and s3:ListBucket; without the latter an object that is not there is refused too)"
_OF_METADATA = "/latest/(?:api/token|meta-data)"
"""Where a machine of a cloud asks for its role's keys: asked where the environment has none."""
_CAUSES = {  # what said_by() gives, and what to do
    _OF_METADATA: "no keys are in the environment, and this machine has no role; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    r"\((InvalidAccessKeyId|SignatureDoesNotMatch)\)": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not a key of this store",
    r"\((ExpiredToken|InvalidToken|TokenRefreshRequired)\)": "get new keys: AWS_SESSION_TOKEN is old, or of other keys",
    r"\(RequestTimeTooSkewed\)": "this machine's clock is not the store's",
    r"incorrectly configured region|\((PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)\)":
        "set AWS_REGION to the bucket's region",
    r"\(NoSuchBucket\)": "make the bucket, or correct its name in `lake`",
}  # fmt: skip


def said_by(error: Exception) -> str:
    """What went wrong in a line: the store's own code where it gave one, no body, no address with a user in it."""
    text = str(error)
    code = _CODE.search(text)
    first = text.partition("\n")[0].partition("<?xml")[0]
    plain = re.sub(r"//[^/\s]*@", "//", re.sub(r"\?\S*", "", first)).strip(" :")
    short = plain if len(plain) <= 300 else f"{plain[:150]} … {plain[-147:]}"  # the cause stands at its end
    return f"{short} ({code[1]})" if code else short


def advice(verb: str, error: Exception) -> str:
    """What to do about a request that failed."""
    said = said_by(error)
    for pattern, cause in _CAUSES.items():
        if re.search(pattern, said):
            return f"fix this: {cause}"
    if verb == "GET" and _IS_REFUSED.search(said):
        return f"fix this{_LISTED}"
    is_waited = _WAITED.search(str(error)) is not None
    return f"fix this, or set SALON_STORE_WAIT_S ({store_wait_s(DEFAULT_WAIT_S):g} s now)" if is_waited else "fix this"
