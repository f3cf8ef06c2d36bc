//! Starts a PostgreSQL server for tests in other languages. For each line of standard input, creates an empty database and prints its
//! URL. At the end of the input, stops the server.

use std::io::{BufRead, Write};

use threadkeep_postgres_server::Server;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let server = Server::start(&[]);
    let mut databases = Vec::new();
    for line in std::io::stdin().lock().lines() {
        line?;
        let database = server.create_database().await;
        let mut output = std::io::stdout().lock();
        writeln!(output, "{}", database.url())?;
        output.flush()?;
        databases.push(database);
    }
    Ok(())
}
