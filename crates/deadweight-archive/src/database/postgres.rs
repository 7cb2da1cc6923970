//! PostgreSQL: a schema `deadweight` in a database that others may use too.
//!
//! A lost connection is made again once; servers that restart are waited for. With `sslmode=require` in the address the
//! connection is encrypted, and the server's certificate is checked.

use super::{Database, Row, Value};
use crate::address::Address;
use crate::error::{ArchiveError, ErrorKind};
use bytes::BytesMut;
use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, Error, NoTls, Statement};
use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::{Duration, Instant};
use tokio_postgres_rustls::MakeRustlsConnect;

/// How long one server may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a server that restarts is waited for.
const RESTART: Duration = Duration::from_secs(20);
/// Between tries to connect again.
const PAUSE: Duration = Duration::from_millis(200);
/// So many prepared statements are kept.
const PREPARED: usize = 64;
/// The lock of writers: shared by those who add, exclusive for those who remove or migrate.
const LOCK: i64 = 0x6465_6164_7765;

/// A connection.
pub(crate) struct Postgres {
    address: Address,
    config: Config,
    client: Client,
    prepared: BTreeMap<String, Statement>,
}

impl Postgres {
    /// Connects to the server of `text`, the address as it was given.
    pub(crate) fn open(address: &Address, text: &str) -> Result<Self, ArchiveError> {
        let mut config: Config = text.parse().map_err(|error: Error| {
            let why = because(address, &error);
            let todo = "write postgres://USER:PASSWORD@HOST/DATABASE; special letters of a password as %40";
            ArchiveError::new(ErrorKind::Address, format!("`{address}` is no address"), why, todo)
        })?;
        if config.get_password().is_none()
            && let Ok(word) = std::env::var("PGPASSWORD")
        {
            config.password(word);
        }
        config.connect_timeout(ANSWER).keepalives_idle(ANSWER).tcp_user_timeout(RESTART);
        config.application_name("deadweight");
        let client = connect(address, &config)?;
        Ok(Self { address: address.clone(), config, client, prepared: BTreeMap::new() })
    }

    fn prepare(&mut self, sql: &str) -> Result<Statement, ArchiveError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).map_err(|error| self.failed(&error))?;
        if self.prepared.len() >= PREPARED {
            self.prepared.clear();
        }
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    fn failed(&self, error: &Error) -> ArchiveError {
        let kind = if self.client.is_closed() { ErrorKind::Lost } else { kind(error) };
        let todo = match kind {
            ErrorKind::Lost => "look whether the server runs, and try again",
            ErrorKind::Full => "free some space on the server and try again",
            ErrorKind::Denied => {
                "ask who manages the database for permission, or name another with --archive"
            }
            ErrorKind::Busy => "try again",
            _ => "the server's log says more",
        };
        let what = format!("cannot use the archive {}", self.address);
        ArchiveError::new(kind, what, because(&self.address, error), todo)
    }
}

fn connect(address: &Address, config: &Config) -> Result<Client, ArchiveError> {
    let client = match config.get_ssl_mode() {
        // `prefer`, the usual mode, would refuse the certificates that servers make themselves.
        SslMode::Require => {
            let Ok((tls, _)) = MakeRustlsConnect::with_native_certs() else {
                let why = "the certificates of this machine cannot be read".into();
                return Err(refused(address, ErrorKind::Denied, why, "install `ca-certificates`"));
            };
            config.connect(tls)
        }
        _ => config.connect(NoTls),
    };
    let mut client = client.map_err(|error| unconnected(address, &error))?;
    // A run is on disk when it is acknowledged, whatever the server's default.
    let session = "SET search_path TO deadweight;
        SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";
    client.batch_execute(session).map_err(|error| unconnected(address, &error))?;
    Ok(client)
}

fn refused(address: &Address, kind: ErrorKind, why: String, todo: &str) -> ArchiveError {
    ArchiveError::new(kind, format!("cannot connect to the archive {address}"), why, todo)
}

/// Why there is no connection, as a sentence.
fn unconnected(address: &Address, error: &Error) -> ArchiveError {
    let why = because(address, error);
    let (kind, todo) = match error.code() {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            let unencrypted = why.contains("no encryption") || why.contains("SSL off");
            let todo = if unencrypted {
                "add ?sslmode=require to the address, if the server takes encrypted connections only"
            } else {
                "correct user and password in the address, or set PGPASSWORD"
            };
            (ErrorKind::Denied, todo)
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => (ErrorKind::Missing, "create it with `createdb`"),
        Some(_) => (kind(error), "try again, or ask who manages the server"),
        None if why.contains("password missing") => {
            (ErrorKind::Denied, "write it in the address, or set PGPASSWORD")
        }
        None if why.contains("certificate") || why.contains("TLS") => (
            ErrorKind::Denied,
            "name a file with the server's authority in SSL_CERT_FILE, or use an address without sslmode=require",
        ),
        None => (ErrorKind::Lost, "look whether the server runs and the address is right"),
    };
    refused(address, kind, why, todo)
}

fn kind(error: &Error) -> ErrorKind {
    match error.code() {
        None if error.is_closed()
            || error.source().is_some_and(|cause| cause.is::<std::io::Error>()) =>
        {
            ErrorKind::Lost
        }
        None => ErrorKind::Database,
        Some(code) => match (code, &code.code()[..2]) {
            (&SqlState::DISK_FULL, _) => ErrorKind::Full,
            (&SqlState::INSUFFICIENT_PRIVILEGE | &SqlState::READ_ONLY_SQL_TRANSACTION, _) => {
                ErrorKind::Denied
            }
            (&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED, _) => ErrorKind::Damaged,
            (&SqlState::TOO_MANY_CONNECTIONS, _) | (_, "40") => ErrorKind::Busy,
            // Connections, and servers that are shut down or start.
            (_, "08") => ErrorKind::Lost,
            (
                &SqlState::ADMIN_SHUTDOWN
                | &SqlState::CRASH_SHUTDOWN
                | &SqlState::CANNOT_CONNECT_NOW,
                _,
            ) => ErrorKind::Lost,
            _ => ErrorKind::Database,
        },
    }
}

/// What the server or the connection says, without the password.
fn because(address: &Address, error: &Error) -> String {
    let said = match error.as_db_error() {
        Some(said) => {
            let detail = said.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("{}{detail}", said.message())
        }
        None => {
            let mut text = error.to_string();
            let mut cause = error.source();
            while let Some(deeper) = cause {
                let says = deeper.to_string();
                if !text.contains(&says) {
                    text = format!("{text}: {says}");
                }
                cause = deeper.source();
            }
            text
        }
    };
    match address.password() {
        Some(word) => said.replace(word, "..."),
        None => said,
    }
}

impl Database for Postgres {
    fn execute(&mut self, sql: &str, values: &[Value]) -> Result<u64, ArchiveError> {
        let statement = self.prepare(sql)?;
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        self.client.execute(&statement, &values).map_err(|error| self.failed(&error))
    }

    fn each(
        &mut self,
        sql: &str,
        values: &[Value],
        take: &mut dyn FnMut(Row) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let statement = self.prepare(sql)?;
        // The rest of the rows is read and dropped once `take` has failed.
        let mut taken = Ok(());
        let read = self.client.query_raw(&statement, values).and_then(|mut rows| {
            while let Some(row) = rows.next()? {
                let cells = (0..row.len()).map(|at| cell(&row, at)).collect::<Result<_, _>>()?;
                taken = take(cells);
                if taken.is_err() {
                    break;
                }
            }
            Ok(())
        });
        read.map_err(|error| self.failed(&error))?;
        taken
    }

    fn batch(&mut self, sql: &str) -> Result<(), ArchiveError> {
        self.client.batch_execute(sql).map_err(|error| self.failed(&error))
    }

    fn begin(&mut self, alone: bool) -> Result<(), ArchiveError> {
        let how = if alone { "" } else { "_shared" };
        self.batch(&format!("BEGIN; SELECT pg_advisory_xact_lock{how}({LOCK})"))
    }

    fn has_table(&mut self, name: &str) -> Result<bool, ArchiveError> {
        let sql =
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'deadweight' AND tablename = $1";
        (self as &mut dyn Database).number(sql, &[name.into()]).map(|tables| tables > 0)
    }

    fn is_empty(&mut self) -> Result<bool, ArchiveError> {
        let sql = "SELECT count(*) FROM pg_tables WHERE schemaname = 'deadweight'";
        (self as &mut dyn Database).number(sql, &[]).map(|tables| tables == 0)
    }

    fn dialect(&self, sql: &str) -> String {
        format!("CREATE SCHEMA IF NOT EXISTS deadweight;\n{}", sql.replace("{clustered}", ""))
    }

    fn size(&mut self) -> Result<u64, ArchiveError> {
        let sql = "SELECT CAST(sum(pg_total_relation_size(format('%I.%I', schemaname, tablename)::regclass)) AS BIGINT) \
                   FROM pg_tables WHERE schemaname = 'deadweight'";
        (self as &mut dyn Database).number(sql, &[]).map(i64::unsigned_abs)
    }

    fn damage(&mut self) -> Result<Vec<String>, ArchiveError> {
        // Reading everything, which a check does, finds damaged pages; `pg_amcheck` is the server's own check.
        Ok(Vec::new())
    }

    fn shrink(&mut self) -> Result<(), ArchiveError> {
        // The server's autovacuum does.
        Ok(())
    }

    fn reconnect(&mut self) -> Result<(), ArchiveError> {
        let begun = Instant::now();
        self.prepared.clear();
        loop {
            match connect(&self.address, &self.config) {
                Ok(client) => {
                    self.client = client;
                    return Ok(());
                }
                Err(error) if error.kind == ErrorKind::Lost && begun.elapsed() < RESTART => {
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn cell(row: &postgres::Row, at: usize) -> Result<Value, Error> {
    let kind = row.columns()[at].type_();
    Ok(match *kind {
        Type::INT8 => row.try_get::<_, Option<i64>>(at)?.map_or(Value::Null, Value::Int),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(at)?.map_or(Value::Null, Value::Real),
        Type::BOOL => row.try_get::<_, Option<bool>>(at)?.map_or(Value::Null, Value::Bool),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map_or(Value::Null, Value::Bytes),
        _ => row.try_get::<_, Option<String>>(at)?.map_or(Value::Null, Value::Text),
    })
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self {
            Self::Int(value) => value.to_sql(kind, out),
            Self::Real(value) => value.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bool(value) => value.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
            Self::Null => Ok(IsNull::Yes),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
