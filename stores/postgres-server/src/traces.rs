//! Finds the places in which a database contains the given text, for tests of erasure.

use tokio_postgres::{Client, Error};

use crate::Database;
use crate::server::connect;

impl Database {
    /// Returns the columns that contain the text, as text, as bytes, or as hexadecimal bytes. Ignores case in text. Searches all
    /// tables except system tables.
    ///
    /// # Errors
    /// The server reports an error.
    pub async fn columns_with(&self, text: &str) -> Result<Vec<String>, Error> {
        let client = connect(&self.url()).await?;
        let columns = "SELECT format('%I.%I', c.table_schema, c.table_name), format('%I', c.column_name), c.udt_name::text \
                       FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) \
                       WHERE c.table_schema NOT IN ('pg_catalog', 'information_schema') AND t.table_type = 'BASE TABLE'";
        let mut found = Vec::new();
        for row in client.query(columns, &[]).await? {
            let (table, column, kind): (String, String, String) = (row.get(0), row.get(1), row.get(2));
            let condition = match kind.as_str() {
                "bytea" => format!("position(convert_to($1::text, 'UTF8') IN {column}) > 0"),
                _ => format!(
                    "({column}::text ILIKE '%' || $1::text || '%' OR {column}::text LIKE '%' || $2::text || '%')"
                ),
            };
            let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            let sql = format!("SELECT count(*) FROM {table} WHERE {condition} AND ($1::text <> $2::text)");
            if client.query_one(&sql, &[&text, &hex]).await?.get::<_, i64>(0) > 0 {
                found.push(format!("{table}.{column}"));
            }
        }
        Ok(found)
    }

    /// Runs SQL statements on the database as its owner.
    ///
    /// # Errors
    /// The server reports an error.
    pub async fn run(&self, sql: &str) -> Result<(), Error> {
        connect(&self.url()).await?.batch_execute(sql).await
    }

    /// Returns the columns whose statistics, as collected by `ANALYZE`, contain the text.
    ///
    /// # Errors
    /// The server reports an error.
    pub async fn statistics_with(&self, text: &str) -> Result<Vec<String>, Error> {
        let client = connect(&self.url()).await?;
        let sql = "SELECT format('%I.%I.%I', schemaname, tablename, attname) FROM pg_stats s WHERE s::text ILIKE '%' || $1::text || '%'";
        query_names(&client, sql, text).await
    }

    /// Returns the tables, indexes, TOAST tables and sequences whose files contain the text after a checkpoint.
    ///
    /// # Errors
    /// The server reports an error.
    pub async fn files_with(&self, text: &str) -> Result<Vec<String>, Error> {
        let client = connect(&self.url()).await?;
        client.batch_execute("CHECKPOINT").await?;
        let sql = "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'i', 't', 'S') \
                   AND pg_relation_filepath(c.oid) NOT LIKE 'global/%' \
                   AND position(convert_to($1::text, 'UTF8') IN pg_read_binary_file(pg_relation_filepath(c.oid))) > 0";
        query_names(&client, sql, text).await
    }
}

async fn query_names(client: &Client, sql: &str, text: &str) -> Result<Vec<String>, Error> {
    Ok(client.query(sql, &[&text]).await?.iter().map(|row| row.get(0)).collect())
}
