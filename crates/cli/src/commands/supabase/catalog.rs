//! Reads the parts of a database's system catalog that the checks need.

use anyhow::{Context, Result};
use tokio_postgres::{Client, Row};

/// The parts of a database's system catalog that the checks need.
#[derive(Clone, Debug, Default)]
pub(super) struct Catalog {
    /// Roles, tables and functions of Supabase that the database lacks.
    pub(super) missing_platform: Vec<String>,
    /// The relations named `conversations` and `messages` in the schema `public`.
    pub(super) tables: Vec<Table>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) is_table: bool,
    pub(super) has_row_security: bool,
    pub(super) columns: Vec<Column>,
    /// The foreign keys: column and referenced table.
    pub(super) references: Vec<(String, String)>,
    pub(super) policies: Vec<Policy>,
    /// The granted privileges: role and privilege.
    pub(super) privileges: Vec<(String, String)>,
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: String,
}

#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) is_permissive: bool,
    pub(super) roles: Vec<String>,
    pub(super) command: String,
    pub(super) using: Option<String>,
    pub(super) check: Option<String>,
}

impl Policy {
    /// Whether the policy applies to a command such as `SELECT`.
    pub(super) fn applies_to_command(&self, command: &str) -> bool {
        self.command == command || self.command == "ALL"
    }

    /// Whether the policy applies to a role.
    pub(super) fn applies_to_role(&self, role: &str) -> bool {
        self.roles.iter().any(|found| found == role || found == "public")
    }
}

const PLATFORM: &str = "
    SELECT name FROM (VALUES
        ('role anon', to_regrole('anon') IS NOT NULL),
        ('role authenticated', to_regrole('authenticated') IS NOT NULL),
        ('role service_role', to_regrole('service_role') IS NOT NULL),
        ('table auth.users', to_regclass('auth.users') IS NOT NULL),
        ('function auth.uid()', to_regprocedure('auth.uid()') IS NOT NULL)
    ) AS platform (name, is_there) WHERE NOT is_there";

const TABLES: &str = "
    SELECT relname::text, relkind IN ('r', 'p'), relrowsecurity FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relname IN ('conversations', 'messages') AND relkind NOT IN ('i', 'I')
    ORDER BY relname";

const COLUMNS: &str = "
    SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
    WHERE attrelid = format('public.%I', $1::text)::regclass AND attnum > 0 AND NOT attisdropped";

const REFERENCES: &str = "
    SELECT attname::text, (SELECT relname::text FROM pg_class WHERE oid = confrelid) FROM pg_constraint
    JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]
    WHERE contype = 'f' AND cardinality(conkey) = 1 AND conrelid = format('public.%I', $1::text)::regclass";

const POLICIES: &str = "
    SELECT policyname::text, permissive = 'PERMISSIVE', roles::text[], cmd, qual, with_check FROM pg_policies
    WHERE schemaname = 'public' AND tablename = $1 ORDER BY policyname";

const PRIVILEGES: &str = "
    SELECT rolname::text, privilege FROM pg_roles,
        unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) AS privilege
    WHERE rolname IN ('anon', 'authenticated')
        AND has_table_privilege(rolname, format('public.%I', $1::text)::regclass, privilege)";

impl Catalog {
    /// Reads the system catalog of a database.
    pub(super) async fn read(client: &Client) -> Result<Self> {
        let cannot_read = "cannot read the database's catalog";
        let missing = client.query(PLATFORM, &[]).await.context(cannot_read)?;
        let mut catalog = Self { missing_platform: missing.iter().map(|row| row.get(0)).collect(), tables: Vec::new() };
        for row in client.query(TABLES, &[]).await.context(cannot_read)? {
            catalog.tables.push(Table::read(client, &row).await.context(cannot_read)?);
        }
        Ok(catalog)
    }
}

impl Table {
    async fn read(client: &Client, row: &Row) -> Result<Self, tokio_postgres::Error> {
        let name: String = row.get(0);
        let columns = client.query(COLUMNS, &[&name]).await?;
        let references = client.query(REFERENCES, &[&name]).await?;
        let policies = client.query(POLICIES, &[&name]).await?;
        let privileges = client.query(PRIVILEGES, &[&name]).await?;
        Ok(Self {
            is_table: row.get(1),
            has_row_security: row.get(2),
            columns: columns.iter().map(|row| Column { name: row.get(0), kind: row.get(1) }).collect(),
            references: references.iter().map(|row| (row.get(0), row.get(1))).collect(),
            policies: policies.iter().map(policy).collect(),
            privileges: privileges.iter().map(|row| (row.get(0), row.get(1))).collect(),
            name,
        })
    }
}

fn policy(row: &Row) -> Policy {
    Policy {
        name: row.get(0),
        is_permissive: row.get(1),
        roles: row.get(2),
        command: row.get(3),
        using: row.get(4),
        check: row.get(5),
    }
}
