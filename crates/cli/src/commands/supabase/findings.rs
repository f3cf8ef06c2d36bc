//! What an application's tables need, held against what a database has.

use std::fmt;

use serde::Serialize;

use super::catalog::{Catalog, Column, Policy, Table};

const PLATFORM: &str = include_str!("sql/platform.sql");
const RIGHTS: &str = include_str!("sql/rights.sql");

/// The commands that row security stands before.
const COMMANDS: [&str; 4] = ["SELECT", "INSERT", "UPDATE", "DELETE"];
/// Rights that see past row security.
const PAST_ROW_SECURITY: [&str; 3] = ["TRUNCATE", "REFERENCES", "TRIGGER"];

/// Something that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) what: String,
    pub(super) is_there: bool,
    pub(super) detail: String,
    /// What makes it so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sql: Option<String>,
}

/// A table of the documents.
struct Wanted {
    name: &'static str,
    /// Name, type, and whether it may be left empty.
    columns: &'static [(&'static str, &'static str)],
    /// The column and what it points to.
    reference: (&'static str, &'static str),
    make: &'static str,
    policies: &'static str,
}

// S3.27, S3.28, S3.29
const TABLES: [Wanted; 2] = [
    Wanted {
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
        make: include_str!("sql/conversations.sql"),
        policies: include_str!("sql/conversations_policies.sql"),
    },
    Wanted {
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
        make: include_str!("sql/messages.sql"),
        policies: include_str!("sql/messages_policies.sql"),
    },
];

impl Finding {
    pub(super) fn there(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { what: what.into(), is_there: true, detail: detail.into(), sql: None }
    }

    pub(super) fn missing(what: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { is_there: false, ..Self::there(what, detail) }
    }

    fn made_by(self, sql: impl Into<String>) -> Self {
        Self { sql: Some(sql.into()), ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.detail)
    }
}

/// The SQL that makes what is missing, each piece once, in an order in which it works.
pub(super) fn sql(findings: &[Finding]) -> String {
    let mut pieces: Vec<&str> = Vec::new();
    for piece in findings.iter().filter_map(|finding| finding.sql.as_deref()) {
        if !pieces.contains(&piece) {
            pieces.push(piece);
        }
    }
    pieces.iter().map(|piece| piece.trim_end()).collect::<Vec<_>>().join("\n\n")
}

/// Holds a database against what is wanted.
pub(super) fn of(catalog: &Catalog) -> Vec<Finding> {
    let mut findings = vec![platform(catalog)];
    for wanted in &TABLES {
        match catalog.tables.iter().find(|table| table.name == wanted.name) {
            None => {
                let what = format!("table {}", wanted.name);
                findings.push(Finding::missing(what, "there is none in the schema public").made_by(wanted.make));
                findings.push(no_policies(wanted, "the table is missing"));
            }
            Some(table) => of_table(wanted, table, &mut findings),
        }
    }
    findings.push(rights(catalog));
    findings
}

fn platform(catalog: &Catalog) -> Finding {
    if catalog.missing_platform.is_empty() {
        return Finding::there(
            "Supabase's roles",
            "anon, authenticated, service_role, auth.users and auth.uid() are there",
        );
    }
    let missing = catalog.missing_platform.join(", ");
    let detail = format!("{missing} missing: this is no database of Supabase; the SQL stands in for what it has");
    Finding::missing("Supabase's roles", detail).made_by(PLATFORM)
}

fn of_table(wanted: &Wanted, table: &Table, findings: &mut Vec<Finding>) {
    let name = wanted.name;
    let what = format!("table {name}");
    if !table.is_table {
        findings
            .push(Finding::missing(what, "it is a view or something else, not a table; row security is its owner's"));
        return;
    }
    let lacking: Vec<_> = wanted.columns.iter().filter(|column| !has(table, column)).collect();
    if lacking.is_empty() {
        findings.push(Finding::there(what, "has its columns"));
    }
    for (column, kind) in lacking {
        findings.push(of_column(table, column, kind));
    }
    findings.push(reference(wanted, table));
    findings.push(row_security(wanted, table));
    findings.extend(policies(wanted, table));
}

fn has(table: &Table, (name, kind): &(&str, &str)) -> bool {
    table.columns.iter().any(|column| column.name == *name && fits(column, kind))
}

/// `varchar` holds text, too.
fn fits(column: &Column, kind: &str) -> bool {
    column.kind == kind || kind == "text" && column.kind.starts_with("character varying")
}

fn of_column(table: &Table, column: &str, kind: &str) -> Finding {
    let what = format!("column {}.{column}", table.name);
    match table.columns.iter().find(|found| found.name == column) {
        // Changing a type changes what is there: that is for people.
        Some(found) => Finding::missing(what, format!("it is {}, not {kind}", found.kind)),
        None => {
            let sql = format!("ALTER TABLE public.{} ADD COLUMN {column} {kind};", table.name);
            Finding::missing(what, format!("there is none, of type {kind}")).made_by(sql)
        }
    }
}

fn reference(wanted: &Wanted, table: &Table) -> Finding {
    let (column, target) = wanted.reference;
    let what = format!("reference of {}.{column}", wanted.name);
    if table.references.iter().any(|(from, to)| from == column && to == target) {
        return Finding::there(what, format!("points to {target}"));
    }
    let target = if target == "users" { "auth.users" } else { "public.conversations" };
    let sql = format!(
        "ALTER TABLE public.{} ADD FOREIGN KEY ({column}) REFERENCES {target} (id) ON DELETE CASCADE;",
        wanted.name
    );
    Finding::missing(what, format!("it does not point to {target}, so what belongs to nobody stays")).made_by(sql)
}

fn row_security(wanted: &Wanted, table: &Table) -> Finding {
    let what = format!("row security of {}", wanted.name);
    if table.has_row_security {
        Finding::there(what, "is on")
    } else {
        Finding::missing(what, "is off: whoever may read the table reads everybody's rows").made_by(wanted.policies)
    }
}

fn no_policies(wanted: &Wanted, why: &str) -> Finding {
    Finding::missing(format!("policies of {}", wanted.name), why).made_by(wanted.policies)
}

fn policies(wanted: &Wanted, table: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    let unguarded: Vec<&str> = COMMANDS.into_iter().filter(|command| !is_allowed(table, command)).collect();
    if !unguarded.is_empty() {
        let why = format!("none lets a user {} own rows", unguarded.join(", "));
        findings.push(no_policies(wanted, &why));
    }
    for policy in table.policies.iter().filter(|policy| is_open(policy)) {
        let what = format!("policy {} of {}", policy.name, wanted.name);
        let sql = format!("DROP POLICY {} ON public.{};", quoted(&policy.name), wanted.name);
        let finding = Finding::missing(what, "does not ask whose row it is, so it shows everybody's");
        findings.push(finding.made_by(sql));
        if !findings.iter().any(|finding| finding.sql.as_deref() == Some(wanted.policies)) {
            findings.push(no_policies(wanted, "what is left once that one is gone is made anew"));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::there(format!("policies of {}", wanted.name), "ask whose row it is"));
    }
    findings
}

fn is_allowed(table: &Table, command: &str) -> bool {
    table.policies.iter().any(|policy| policy.is_permissive && policy.is_for(command) && policy.is_of("authenticated"))
}

/// Whether a policy that widens what a user of the application sees does not ask who that is.
fn is_open(policy: &Policy) -> bool {
    let is_theirs =
        ["anon", "authenticated", "public"].iter().any(|role| policy.roles.iter().any(|found| found == role));
    let asks = |condition: &Option<String>| {
        condition.as_ref().is_none_or(|text| text.contains("uid()") || text.contains("request.jwt"))
    };
    let is_empty = policy.using.is_none() && policy.check.is_none();
    policy.is_permissive && is_theirs && (is_empty || !asks(&policy.using) || !asks(&policy.check))
}

fn rights(catalog: &Catalog) -> Finding {
    let what = "rights";
    let both_there = TABLES.iter().all(|wanted| catalog.tables.iter().any(|table| table.name == wanted.name));
    if !both_there || !catalog.missing_platform.is_empty() {
        return Finding::missing(what, "a user needs them on both tables").made_by(RIGHTS);
    }
    let held = |role: &str, right: &str, table: &Table| {
        table.rights.iter().any(|held| held == &(role.to_owned(), right.to_owned()))
    };
    for table in &catalog.tables {
        let name = &table.name;
        if let Some(right) = COMMANDS.into_iter().find(|right| !held("authenticated", right, table)) {
            return Finding::missing(what, format!("authenticated may not {right} {name}")).made_by(RIGHTS);
        }
        for role in ["anon", "authenticated"] {
            if let Some(right) = PAST_ROW_SECURITY.into_iter().find(|right| held(role, right, table)) {
                let detail = format!("{role} has {right} on {name}, before which row security does not stand");
                return Finding::missing(what, detail).made_by(RIGHTS);
            }
        }
    }
    Finding::there(what, "authenticated reads and writes rows, and nothing sees past row security")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests;
