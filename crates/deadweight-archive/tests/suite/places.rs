//! Where the tests keep their archives: a file in a folder of its own, or a database of its own.

use crate::server::{Server, shared};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A place for one archive.
pub(crate) struct Place {
    /// Its address.
    pub(crate) address: String,
    folder: PathBuf,
}

/// A place in each database.
pub(crate) fn both() -> [Place; 2] {
    [Place::sqlite(), Place::postgres(shared())]
}

impl Place {
    /// A file of SQLite that does not exist yet.
    pub(crate) fn sqlite() -> Self {
        let folder = std::env::temp_dir().join(format!("deadweight-archive-{}", unique()));
        std::fs::create_dir_all(&folder).unwrap();
        Self { address: format!("sqlite:{}/archive.db", folder.display()), folder }
    }

    /// An empty database of the server.
    pub(crate) fn postgres(server: &Server) -> Self {
        let database = format!("archive_{}", unique());
        server.create(&database);
        Self { address: server.address(&database), folder: PathBuf::new() }
    }

    /// The archive's file.
    pub(crate) fn file(&self) -> &Path {
        Path::new(self.address.trim_start_matches("sqlite:"))
    }

    /// Executes statements that are not deadweight's.
    pub(crate) fn sql(&self, sql: &str) {
        if self.address.starts_with("sqlite:") {
            rusqlite::Connection::open(self.file()).unwrap().execute_batch(sql).unwrap();
            return;
        }
        let mut client = postgres::Client::connect(&self.address, postgres::NoTls).unwrap();
        client.batch_execute(&format!("SET search_path TO deadweight; {sql}")).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.folder.as_os_str().is_empty() {
            _ = std::fs::remove_dir_all(&self.folder);
        }
    }
}

fn unique() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}
