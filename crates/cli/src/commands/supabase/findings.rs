//! Compares a database with the tables, policies and privileges that an application needs.

use std::fmt;

use serde::Serialize;

use super::catalog::{Catalog, Column, Policy, Table};

const PLATFORM: &str = include_str!("sql/platform.sql");
const PRIVILEGES: &str = include_str!("sql/privileges.sql");

/// The commands to which row security applies.
const COMMANDS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];
/// Privileges that bypass row security.
const BYPASSING_PRIVILEGES: [&str; 3] = ["TRUNCATE", "REFERENCES", "TRIGGER"];

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) what: String,
    pub(super) is_there: bool,
    pub(super) detail: String,
    /// The SQL that fixes the problem, if there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sql: Option<String>,
}

/// A table that the application needs.
struct RequiredTable {
    name: &'static str,
    /// The names and types of the columns.
    columns: &'static [(&'static str, &'static str)],
    /// The foreign key: column and referenced table.
    reference: (&'static str, &'static str),
    create: &'static str,
    policies: &'static str,
}

// S3.27, S3.28, S3.29
const TABLES: [RequiredTable; 2] = [
    RequiredTable {
        name: "conversations",
        columns: &[
            ("id", "uuid"),
            ("user_id", "uuid"),
            ("title", "text"),
            ("model", "text"),
            ("created_at", "timestamp with time zone"),
            ("updated_at", "timestamp with time zone"),
        ],
        reference: ("user_id", "users"),
        create: include_str!("sql/conversations.sql"),
        policies: include_str!("sql/conversations_policies.sql"),
    },
    RequiredTable {
        name: "messages",
        columns: &[
            ("id", "uuid"),
            ("conversation_id", "uuid"),
            ("role", "text"),
            ("content", "text"),
            ("sources", "jsonb"),
            ("created_at", "timestamp with time zone"),
        ],
        reference: ("conversation_id", "conversations"),
        create: include_str!("sql/messages.sql"),
        policies: include_str!("sql/messages_policies.sql"),
    },
];

impl Finding {
    pub(super) fn passed(subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { what: subject.into(), is_there: true, detail: detail.into(), sql: None }
    }

    pub(super) fn failed(subject: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { is_there: false, ..Self::passed(subject, detail) }
    }

    fn fixed_by(self, sql: impl Into<String>) -> Self {
        Self { sql: Some(sql.into()), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.detail)
    }
}

/// Returns the SQL that fixes all problems. Contains each statement once, in an order in which the statements can run.
pub(super) fn sql(findings: &[Finding]) -> String {
    let mut pieces: Vec<&str> = Vec::new();
    for piece in findings.iter().filter_map(|finding| finding.sql.as_deref()) {
        if !pieces.contains(&piece) {
            pieces.push(piece);
        }
    }
    pieces.iter().map(|piece| piece.trim_end()).collect::<Vec<_>>().join("\n\n")
}

/// Returns the findings about a database.
pub(super) fn of(catalog: &Catalog) -> Vec<Finding> {
    let mut findings = vec![platform(catalog)];
    for required in &TABLES {
        match catalog.tables.iter().find(|table| table.name == required.name) {
            None => {
                let subject = format!("table {}", required.name);
                findings.push(Finding::failed(subject, "missing in schema public").fixed_by(required.create));
                findings.push(no_policies(required, "the table is missing"));
            }
            Some(table) => of_table(required, table, &mut findings),
        }
    }
    findings.push(privileges(catalog));
    findings
}

fn platform(catalog: &Catalog) -> Finding {
    if catalog.missing_platform.is_empty() {
        return Finding::passed(
            "Supabase's roles",
            "anon, authenticated, service_role, auth.users and auth.uid() exist",
        );
    }
    let missing = catalog.missing_platform.join(", ");
    let detail = format!("missing {missing}: this is not a Supabase database; the SQL creates replacements");
    Finding::failed("Supabase's roles", detail).fixed_by(PLATFORM)
}

fn of_table(required: &RequiredTable, table: &Table, findings: &mut Vec<Finding>) {
    let name = required.name;
    let subject = format!("table {name}");
    if !table.is_table {
        findings.push(Finding::failed(subject, "not a table; a view applies the row security of its owner"));
        return;
    }
    let lacking: Vec<_> = required.columns.iter().filter(|column| !has(table, column)).collect();
    if lacking.is_empty() {
        findings.push(Finding::passed(subject, "has the required columns"));
    }
    for (column, kind) in lacking {
        findings.push(of_column(table, column, kind));
    }
    findings.push(reference(required, table));
    findings.push(row_security(required, table));
    findings.extend(policies(required, table));
}

fn has(table: &Table, (name, kind): &(&str, &str)) -> bool {
    table.columns.iter().any(|column| column.name == *name && fits(column, kind))
}

/// Whether the type of a column is the required one. `varchar` is accepted as `text`.
fn fits(column: &Column, kind: &str) -> bool {
    column.kind == kind || kind == "text" && column.kind.starts_with("character varying")
}

fn of_column(table: &Table, column: &str, kind: &str) -> Finding {
    let subject = format!("column {}.{column}", table.name);
    match table.columns.iter().find(|found| found.name == column) {
        // No SQL is suggested, because changing the type of a column converts existing data.
        Some(found) => Finding::failed(subject, format!("has type {}, expected {kind}", found.kind)),
        None => {
            let sql = format!("ALTER TABLE public.{} ADD COLUMN {column} {kind};", table.name);
            Finding::failed(subject, format!("missing, expected type {kind}")).fixed_by(sql)
        }
    }
}

fn reference(required: &RequiredTable, table: &Table) -> Finding {
    let (column, target) = required.reference;
    let subject = format!("foreign key {}.{column}", required.name);
    if table.references.iter().any(|(from, to)| from == column && to == target) {
        return Finding::passed(subject, format!("references {target}"));
    }
    let target = if target == "users" { "auth.users" } else { "public.conversations" };
    let sql = format!(
        "ALTER TABLE public.{} ADD FOREIGN KEY ({column}) REFERENCES {target} (id) ON DELETE CASCADE;",
        required.name
    );
    Finding::failed(subject, format!("does not reference {target}, so orphaned rows remain")).fixed_by(sql)
}

fn row_security(required: &RequiredTable, table: &Table) -> Finding {
    let subject = format!("row security of {}", required.name);
    if table.has_row_security {
        Finding::passed(subject, "enabled")
    } else {
        Finding::failed(subject, "disabled: any role that can read the table reads the rows of all users")
            .fixed_by(required.policies)
    }
}

fn no_policies(required: &RequiredTable, why: &str) -> Finding {
    Finding::failed(format!("policies of {}", required.name), why).fixed_by(required.policies)
}

fn policies(required: &RequiredTable, table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    let forbidden: Vec<&str> = COMMANDS.into_iter().filter(|command| !is_allowed(table, command)).collect();
    if !forbidden.is_empty() {
        let why = format!("no policy lets a user {} their own rows", forbidden.join(", "));
        findings.push(no_policies(required, &why));
    }
    for policy in table.policies.iter().filter(|policy| is_open(policy)) {
        let subject = format!("policy {} of {}", policy.name, required.name);
        let sql = format!("DROP POLICY {} ON public.{};", quoted(&policy.name), required.name);
        let finding = Finding::failed(subject, "does not check the row's owner, so it exposes the rows of all users");
        findings.push(finding.fixed_by(sql));
        if !findings.iter().any(|finding| finding.sql.as_deref() == Some(required.policies)) {
            findings.push(no_policies(required, "recreated after the open policy is dropped"));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::passed(format!("policies of {}", required.name), "check the row's owner"));
    }
    findings
}

fn is_allowed(table: &Table, command: &str) -> bool {
    table.policies.iter().any(|policy| {
        policy.is_permissive && policy.applies_to_command(command) && policy.applies_to_role("authenticated")
    })
}

/// Whether a policy gives users of the application access without checking the owner of the row.
fn is_open(policy: &Policy) -> bool {
    let applies_to_users =
        ["anon", "authenticated", "public"].iter().any(|role| policy.roles.iter().any(|found| found == role));
    let checks_owner = |condition: &Option<String>| {
        condition.as_ref().is_none_or(|text| text.contains("uid()") || text.contains("request.jwt"))
    };
    let is_empty = policy.using.is_none() && policy.check.is_none();
    policy.is_permissive
        && applies_to_users
        && (is_empty || !checks_owner(&policy.using) || !checks_owner(&policy.check))
}

fn privileges(catalog: &Catalog) -> Finding {
    let subject = "privileges";
    let both_there = TABLES.iter().all(|required| catalog.tables.iter().any(|table| table.name == required.name));
    if !both_there || !catalog.missing_platform.is_empty() {
        return Finding::failed(subject, "the role authenticated needs them on both tables").fixed_by(PRIVILEGES);
    }
    let has = |role: &str, privilege: &str, table: &Table| {
        table.privileges.iter().any(|found| found == &(role.to_owned(), privilege.to_owned()))
    };
    for table in &catalog.tables {
        let name = &table.name;
        if let Some(privilege) = COMMANDS.into_iter().find(|privilege| !has("authenticated", privilege, table)) {
            return Finding::failed(subject, format!("authenticated lacks {privilege} on {name}")).fixed_by(PRIVILEGES);
        }
        for role in ["anon", "authenticated"] {
            if let Some(privilege) = BYPASSING_PRIVILEGES.into_iter().find(|privilege| has(role, privilege, table)) {
                let detail = format!("{role} has {privilege} on {name}, which bypasses row security");
                return Finding::failed(subject, detail).fixed_by(PRIVILEGES);
            }
        }
    }
    Finding::passed(subject, "authenticated can read and write rows, and no user role bypasses row security")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests;
