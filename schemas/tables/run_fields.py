"""The columns of runs and partitions: what was asked when, and of which checkpoint. The others: fields.py."""

from schemas.tables.field import UTC_TIMESTAMP, Field, count, digest, number, text

# --- runs -------------------------------------------------------------------------------------------------------
STARTED_AT = Field("started_at", UTC_TIMESTAMP, "When the run started.")
FINISHED_AT = Field("finished_at", UTC_TIMESTAMP, "When the run finished.")
PUBLICATION_ID = digest("publication_id", "The publication the run made or found; null where it made none.", null=True)
OUTCOME = text("outcome", "published, unchanged, blocked, or stopped: ended while it asked, by an error or told to.")
N_REQUESTS = count("n_requests", "Distinct requests of the plan.")
N_CACHED = count("n_cached", "Requests whose reply was already stored.")
N_ASKED = count("n_asked", "Attempts sent in this run, retries and re-asks included.")
N_SAMPLES = count("n_samples", "Samples of the dataset.")
N_SAMPLES_OK = count("n_samples_ok", "Samples that could be used.")
CODE_VERSION = digest("code_version", "sha256 over Salon's own source files.")

# --- partitions -------------------------------------------------------------------------------------------------
PARTITION_ID = digest("partition_id", "sha256 over benchmark, checkpoint, dataset and the digests of rubric and judge.")
PARTITION_DATASET_ID = digest("dataset_id", "sha256 over the sorted sample ids of the checkpoint alone.")
JUDGE_DIGEST = digest("judge_digest", "sha256 over what makes the judge's answers others.")
SOURCES_JSON = text("sources_json", "The sources the checkpoint has samples of, JSON list.")
PARTITION_STATE = text("state", "planned, running, done or failed, as it was last written down.")
N_LEFT = count("n_left", "Requests without a final reply.")
ONLINE_USD = number("online_usd", "What is left would cost asked one by one, as last previewed.", unit="USD", low=0)
BATCH_USD = number("batch_usd", "What is left would cost by the Batch API, as last previewed.", unit="USD", low=0)
ASKED_BY = text("asked_by", "backfill, nightly or run.")
PARTITION_DETAIL = text("detail", "Why it failed or is not done; null otherwise.", null=True)
CHANGED_AT = Field("changed_at", UTC_TIMESTAMP, "When the row was written.")
OWNER_HOST = text("host", "The machine of the process that wrote it; null where processes cannot be looked up.", null=True)
OWNER_PID = count("pid", "That process's number.")
OWNER_STARTED = text("process_started", "When that process began, in the machine's own ticks.")
