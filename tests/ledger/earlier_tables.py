"""The tables of earlier versions of the ledger, as those Salons made them. Written down once and never changed."""

from dataclasses import dataclass

_ALWAYS = (
    (
        "CREATE TABLE attempts ( attempt_id VARCHAR(32) NOT NULL, request_key VARCHAR(64) NOT NULL, ask_index INTEGER "
        "NOT NULL, judge_model VARCHAR NOT NULL, started_at_us BIGINT NOT NULL, ended_at_us BIGINT, status VARCHAR(32),"
        " detail {bytes}, PRIMARY KEY (attempt_id) ) {no_rowid}"
    ),
    "CREATE INDEX attempts_by_request ON attempts (request_key, ask_index)",
    "CREATE TABLE ledger_meta ( name VARCHAR(64) NOT NULL, value VARCHAR(255) NOT NULL, PRIMARY KEY (name) )",
)
_REPLIES_1 = (
    (
        "CREATE TABLE replies ( request_key VARCHAR(64) NOT NULL, ask_index INTEGER NOT NULL, status VARCHAR(32) NOT "
        "NULL, reply_text {bytes}, finish_reason {bytes}, refusal_text {bytes}, error_detail {bytes}, judge_model "
        "VARCHAR NOT NULL, answered_model {bytes}, n_input_tokens BIGINT, n_output_tokens BIGINT, cost_usd FLOAT, "
        "latency_s FLOAT, n_attempts BIGINT NOT NULL, received_at_us BIGINT, origin VARCHAR(16), PRIMARY KEY "
        "(request_key, ask_index) )"
    ),
)
_REPLIES_2 = (
    (
        "CREATE TABLE replies ( request_key VARCHAR(64) NOT NULL, ask_index INTEGER NOT NULL, status VARCHAR(32) NOT "
        "NULL, reply_text {bytes}, finish_reason {bytes}, refusal_text {bytes}, error_detail {bytes}, judge_model "
        "VARCHAR NOT NULL, answered_model {bytes}, n_input_tokens BIGINT, n_cached_tokens BIGINT, n_output_tokens "
        "BIGINT, cost_usd FLOAT, latency_s FLOAT, n_attempts BIGINT NOT NULL, received_at_us BIGINT, origin "
        "VARCHAR(16), logprobs_json {bytes}, PRIMARY KEY (request_key, ask_index) )"
    ),
)
_CLAIMS = (
    (
        "CREATE TABLE answering ( plan_id VARCHAR(64) NOT NULL, judge_model VARCHAR NOT NULL, answered_model {bytes} "
        "NOT NULL, PRIMARY KEY (plan_id, judge_model) )"
    ),
    (
        "CREATE TABLE claims ( request_key VARCHAR(64) NOT NULL, owner_id VARCHAR(32) NOT NULL, PRIMARY KEY "
        "(request_key) ) {no_rowid}"
    ),
    "CREATE INDEX ix_claims_owner_id ON claims (owner_id)",
    (
        "CREATE TABLE owners ( owner_id VARCHAR(32) NOT NULL, host VARCHAR(128), pid INTEGER, process_started "
        "VARCHAR(32), expires_at_us BIGINT NOT NULL, PRIMARY KEY (owner_id) )"
    ),
)
_LIMITS = (
    (
        "CREATE TABLE allowances ( allowance_id VARCHAR(64) NOT NULL, paused_until_us BIGINT NOT NULL, "
        "requests_per_minute BIGINT, requests_burst BIGINT, requests_heard_us BIGINT, requests_used_until_us BIGINT NOT"
        " NULL, tokens_per_minute BIGINT, tokens_burst BIGINT, tokens_heard_us BIGINT, tokens_used_until_us BIGINT NOT "
        "NULL, PRIMARY KEY (allowance_id) )"
    ),
    (
        "CREATE TABLE observed_tokens ( rubric_id VARCHAR NOT NULL, rubric_version VARCHAR NOT NULL, judge_model "
        "VARCHAR NOT NULL, n_replies BIGINT NOT NULL, n_input_estimated BIGINT NOT NULL, n_input_reported BIGINT NOT "
        "NULL, n_cached_reported BIGINT NOT NULL, n_output_reported BIGINT NOT NULL, most_of_bound FLOAT NOT NULL, "
        "PRIMARY KEY (rubric_id, rubric_version, judge_model) )"
    ),
)
_BUDGETS_OF_MONEY = (
    (
        "CREATE TABLE budgets ( budget_id VARCHAR(64) NOT NULL, max_nusd BIGINT NOT NULL, leased_nusd BIGINT NOT NULL, "
        "PRIMARY KEY (budget_id) )"
    ),
)
_BUDGETS = (
    (
        "CREATE TABLE budgets ( budget_id VARCHAR(64) NOT NULL, most BIGINT NOT NULL, leased BIGINT NOT NULL, PRIMARY "
        "KEY (budget_id) )"
    ),
)
_BATCHES = (
    (
        "CREATE TABLE batch_lines ( token VARCHAR(32) NOT NULL, request_key VARCHAR(64) NOT NULL, ask_index INTEGER NOT"
        " NULL, attempt_id VARCHAR(32) NOT NULL, PRIMARY KEY (token, request_key) ) {no_rowid}"
    ),
    "CREATE INDEX batch_lines_by_request ON batch_lines (request_key)",
    (
        "CREATE TABLE batches ( token VARCHAR(32) NOT NULL, endpoint VARCHAR NOT NULL, api_key_env VARCHAR NOT NULL, "
        "judge_model VARCHAR NOT NULL, state VARCHAR(16) NOT NULL, n_lines INTEGER NOT NULL, n_bytes BIGINT NOT NULL, "
        "file_id VARCHAR, provider_id VARCHAR, holder_id VARCHAR(32), intended_at_us BIGINT NOT NULL, create_sent_at_us"
        " BIGINT, ended_at_us BIGINT, detail {bytes}, PRIMARY KEY (token) )"
    ),
    "CREATE INDEX ix_batches_state ON batches (state)",
)


@dataclass(frozen=True)
class Earlier:
    """A Salon's number for its ledger, and the tables it made."""

    version: str
    tables: tuple[str, ...]

    def ddl(self, kind: str) -> list[str]:
        """The statements that make it in a database of this kind."""
        words = {"bytes": "BYTEA", "no_rowid": ""} if kind == "postgresql" else {"bytes": "BLOB", "no_rowid": "WITHOUT ROWID"}
        return [
            *(table.format(**words) for table in self.tables),
            f"INSERT INTO ledger_meta VALUES ('version', '{self.version}')",
        ]


def blob(kind: str, text: str) -> str:
    """A text as the bytes it is stored as."""
    return f"convert_to('{text}', 'UTF8')" if kind == "postgresql" else f"CAST('{text}' AS BLOB)"


HISTORY = {
    "1": Earlier("1", _ALWAYS + _REPLIES_1),
    "2, replies alone": Earlier("2", _ALWAYS + _REPLIES_2),
    "2, with claims": Earlier("2", _ALWAYS + _REPLIES_2 + _CLAIMS),
    "2, with limits": Earlier("2", _ALWAYS + _REPLIES_2 + _CLAIMS + _LIMITS + _BUDGETS_OF_MONEY),
    "2, before attempts were counted": Earlier("2", _ALWAYS + _REPLIES_2 + _CLAIMS + _LIMITS + _BUDGETS_OF_MONEY + _BATCHES),
    "2, with batches": Earlier("2", _ALWAYS + _REPLIES_2 + _CLAIMS + _LIMITS + _BUDGETS + _BATCHES),
}
"""By what they are; the number 2 stayed while tables were added."""
