-- The first version. For both databases: {clustered} is SQLite's `WITHOUT ROWID`, which PostgreSQL does not have; and
-- SQLite takes any word for a type, BYTEA too.
CREATE TABLE archive (version BIGINT NOT NULL);

CREATE TABLE shapes (
    shape TEXT NOT NULL PRIMARY KEY,
    names TEXT NOT NULL
);

CREATE TABLE traces (
    trace TEXT NOT NULL PRIMARY KEY,
    size BIGINT NOT NULL,
    content BYTEA NOT NULL
);

CREATE TABLE runs (
    run TEXT NOT NULL PRIMARY KEY,
    workload TEXT NOT NULL,
    "commit" TEXT NOT NULL,
    commit_time BIGINT NOT NULL,
    moment BIGINT NOT NULL,
    branch TEXT NOT NULL,
    dirty BOOLEAN NOT NULL,
    time BIGINT NOT NULL,
    kind TEXT NOT NULL,
    machine TEXT NOT NULL,
    method BIGINT NOT NULL,
    clean_runs BIGINT NOT NULL,
    clean_ns BIGINT NOT NULL,
    clean_low_ns BIGINT NOT NULL,
    clean_high_ns BIGINT NOT NULL,
    net_ns BIGINT NOT NULL,
    error TEXT NOT NULL,
    shape TEXT NOT NULL,
    packed BYTEA NOT NULL,
    source TEXT NOT NULL,
    command TEXT NOT NULL,
    subject TEXT NOT NULL,
    language TEXT NOT NULL,
    producer TEXT NOT NULL,
    build_id TEXT NOT NULL,
    exit_code BIGINT NOT NULL,
    arch TEXT NOT NULL,
    cpu TEXT NOT NULL,
    cpus BIGINT NOT NULL,
    kernel TEXT NOT NULL,
    deadweight TEXT NOT NULL,
    rung TEXT NOT NULL,
    wall_ns BIGINT NOT NULL,
    cpu_ns BIGINT NOT NULL,
    clean_each_ns TEXT NOT NULL,
    max_rss BIGINT NOT NULL,
    traced_runs BIGINT NOT NULL,
    records BIGINT NOT NULL,
    lost BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    best_saving DOUBLE PRECISION NOT NULL,
    unexplained DOUBLE PRECISION NOT NULL,
    hazards TEXT NOT NULL,
    trace TEXT NOT NULL
);
CREATE INDEX runs_of_workload ON runs (workload, moment, time, run);
CREATE INDEX runs_in_order ON runs (moment, time, run);
CREATE INDEX runs_of_commit ON runs ("commit");
CREATE INDEX runs_of_trace ON runs (trace);

CREATE TABLE reports (
    run TEXT NOT NULL PRIMARY KEY REFERENCES runs ON DELETE CASCADE,
    json BYTEA NOT NULL
);

CREATE TABLE rows (
    run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    position BIGINT NOT NULL,
    ledger TEXT NOT NULL,
    account TEXT NOT NULL,
    name TEXT NOT NULL,
    ns BIGINT NOT NULL,
    share DOUBLE PRECISION NOT NULL,
    low_ns BIGINT NOT NULL,
    high_ns BIGINT NOT NULL,
    exact BOOLEAN NOT NULL,
    PRIMARY KEY (run, position)
){clustered};

CREATE TABLE findings (
    run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    position BIGINT NOT NULL,
    rank BIGINT NOT NULL,
    class TEXT NOT NULL,
    process TEXT NOT NULL,
    function TEXT NOT NULL,
    file TEXT NOT NULL,
    line BIGINT NOT NULL,
    amount_ns BIGINT NOT NULL,
    saving_ns BIGINT NOT NULL,
    saving DOUBLE PRECISION NOT NULL,
    low DOUBLE PRECISION NOT NULL,
    high DOUBLE PRECISION NOT NULL,
    how TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (run, position)
){clustered};

CREATE TABLE counts (
    run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    position BIGINT NOT NULL,
    name TEXT NOT NULL,
    value DOUBLE PRECISION NOT NULL,
    low DOUBLE PRECISION NOT NULL,
    high DOUBLE PRECISION NOT NULL,
    exact BOOLEAN NOT NULL,
    PRIMARY KEY (run, position)
){clustered};

CREATE TABLE builds (
    run TEXT NOT NULL REFERENCES runs ON DELETE CASCADE,
    position BIGINT NOT NULL,
    path TEXT NOT NULL,
    build_id TEXT NOT NULL,
    language TEXT NOT NULL,
    producer TEXT NOT NULL,
    PRIMARY KEY (run, position)
){clustered};
CREATE INDEX builds_of_id ON builds (build_id);
