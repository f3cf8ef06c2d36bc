//! Tests row security: inserts rows of two users, attempts allowed and forbidden accesses, and rolls back all changes.

use anyhow::{Context, Result, bail};
use tokio_postgres::{Client, Transaction};

use super::findings::Finding;

const ANA: &str = "00000000-0000-4000-8000-00000000000a";
const BEN: &str = "00000000-0000-4000-8000-00000000000b";
const OF_ANA: &str = "00000000-0000-4000-8000-0000000000a1";
const OF_BEN: &str = "00000000-0000-4000-8000-0000000000b1";

/// A statement to attempt, and its expected outcome.
struct Attempt {
    description: &'static str,
    sql: &'static str,
    expected: Expected,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The statement succeeds and affects this number of rows.
    Affects(u64),
    /// The statement fails or affects no row.
    NoEffect,
}

use Expected::{Affects, NoEffect};

// The placeholders OF_ANA, OF_BEN, ANA and BEN are replaced by ids before a statement runs.
const AS_A_USER: &[Attempt] = &[
    Attempt { description: "read own conversations", sql: "SELECT FROM public.conversations", expected: Affects(1) },
    Attempt { description: "read own messages", sql: "SELECT FROM public.messages", expected: Affects(1) },
    Attempt {
        description: "write a message in their own conversation",
        sql: "INSERT INTO public.messages (conversation_id, role, content) VALUES ('OF_ANA', 'user', 'x')",
        expected: Affects(1),
    },
    Attempt {
        description: "read another user's conversation",
        sql: "SELECT FROM public.conversations WHERE id = 'OF_BEN'",
        expected: NoEffect,
    },
    Attempt {
        description: "read another user's messages",
        sql: "SELECT FROM public.messages WHERE conversation_id = 'OF_BEN'",
        expected: NoEffect,
    },
    Attempt {
        description: "change another user's conversation",
        sql: "UPDATE public.conversations SET title = 'x' WHERE id = 'OF_BEN'",
        expected: NoEffect,
    },
    Attempt {
        description: "change another user's messages",
        sql: "UPDATE public.messages SET content = 'x' WHERE conversation_id = 'OF_BEN'",
        expected: NoEffect,
    },
    Attempt {
        description: "delete another user's conversation",
        sql: "DELETE FROM public.conversations WHERE id = 'OF_BEN'",
        expected: NoEffect,
    },
    Attempt {
        description: "delete another user's messages",
        sql: "DELETE FROM public.messages WHERE conversation_id = 'OF_BEN'",
        expected: NoEffect,
    },
    Attempt {
        description: "create a conversation for another user",
        sql: "INSERT INTO public.conversations (user_id, title) VALUES ('BEN', 'x')",
        expected: NoEffect,
    },
    Attempt {
        description: "write into another user's conversation",
        sql: "INSERT INTO public.messages (conversation_id, role, content) VALUES ('OF_BEN', 'user', 'x')",
        expected: NoEffect,
    },
    Attempt {
        description: "give a conversation to another user",
        sql: "UPDATE public.conversations SET user_id = 'BEN' WHERE id = 'OF_ANA'",
        expected: NoEffect,
    },
    Attempt {
        description: "move a message into another user's conversation",
        sql: "UPDATE public.messages SET conversation_id = 'OF_BEN' WHERE conversation_id = 'OF_ANA'",
        expected: NoEffect,
    },
    Attempt { description: "empty a table", sql: "TRUNCATE public.messages", expected: NoEffect },
    // These statements have no condition, so no SELECT policy applies. They detect errors in the other policies.
    Attempt {
        description: "change own conversations only",
        sql: "UPDATE public.conversations SET title = 'x'",
        expected: Affects(1),
    },
    Attempt {
        description: "change own messages only",
        sql: "UPDATE public.messages SET content = 'x'",
        expected: Affects(1),
    },
    Attempt { description: "delete own messages only", sql: "DELETE FROM public.messages", expected: Affects(1) },
    Attempt {
        description: "delete own conversations only",
        sql: "DELETE FROM public.conversations",
        expected: Affects(1),
    },
];

const WITHOUT_USER: &[Attempt] = &[
    Attempt { description: "read conversations", sql: "SELECT FROM public.conversations", expected: NoEffect },
    Attempt { description: "read messages", sql: "SELECT FROM public.messages", expected: NoEffect },
    Attempt {
        description: "write a message",
        sql: "INSERT INTO public.messages (conversation_id, role, content) VALUES ('OF_ANA', 'user', 'x')",
        expected: NoEffect,
    },
    Attempt {
        description: "create a conversation",
        sql: "INSERT INTO public.conversations (user_id, title) VALUES ('ANA', 'x')",
        expected: NoEffect,
    },
    Attempt {
        description: "change conversations",
        sql: "UPDATE public.conversations SET title = 'x'",
        expected: NoEffect,
    },
    Attempt { description: "delete messages", sql: "DELETE FROM public.messages", expected: NoEffect },
    Attempt { description: "empty a table", sql: "TRUNCATE public.messages", expected: NoEffect },
];

/// Runs all attempts in one transaction that is rolled back.
pub(super) async fn run(client: &mut Client) -> Result<Vec<Finding>> {
    let mut transaction = client.transaction().await.context("cannot start the trial")?;
    insert_rows(&transaction).await.context("cannot insert the trial's rows")?;
    let mut findings = Vec::new();
    for (who, role, user, attempts) in [
        ("a user", "authenticated", ANA, AS_A_USER),
        ("authenticated without a user", "authenticated", "", WITHOUT_USER),
        ("anon", "anon", "", WITHOUT_USER),
    ] {
        let before = findings.len();
        for attempt in attempts {
            findings.extend(attempt.run(&mut transaction, who, role, user).await?);
        }
        if findings.len() == before {
            findings.push(Finding::passed(
                format!("trial as {who}"),
                format!("{} attempts had the expected outcome", attempts.len()),
            ));
        }
    }
    transaction.rollback().await.context("cannot roll back the trial")?;
    Ok(findings)
}

async fn insert_rows(transaction: &Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    let users = format!("INSERT INTO auth.users (id) VALUES ('{ANA}'), ('{BEN}')");
    let conversations = format!(
        "INSERT INTO public.conversations (id, user_id, title) VALUES ('{OF_ANA}', '{ANA}', 'x'), ('{OF_BEN}', '{BEN}', 'x')"
    );
    let messages = format!(
        "INSERT INTO public.messages (conversation_id, role, content) VALUES ('{OF_ANA}', 'user', 'x'), ('{OF_BEN}', 'user', 'x')"
    );
    for sql in [users, conversations, messages] {
        transaction.batch_execute(&sql).await?;
    }
    Ok(())
}

impl Attempt {
    /// Runs the attempt and rolls it back. Returns `None` if it had the expected outcome.
    async fn run(
        &self,
        transaction: &mut Transaction<'_>,
        who: &str,
        role: &str,
        user: &str,
    ) -> Result<Option<Finding>> {
        let savepoint = transaction.savepoint("attempt").await?;
        let claims = if user.is_empty() {
            format!("{{\"role\":\"{role}\"}}")
        } else {
            format!("{{\"sub\":\"{user}\",\"role\":\"{role}\"}}")
        };
        let set_role = format!("SET LOCAL ROLE {role}; SET LOCAL request.jwt.claims = '{claims}'");
        if let Err(error) = savepoint.batch_execute(&set_role).await {
            bail!("the database user cannot act as {role}: {error}; connect as the user `postgres`");
        }
        let sql = [("OF_ANA", OF_ANA), ("OF_BEN", OF_BEN), ("ANA", ANA), ("BEN", BEN)];
        let sql = sql.iter().fold(self.sql.to_owned(), |sql, (name, id)| sql.replace(name, id));
        let affected = savepoint.execute(&sql, &[]).await;
        savepoint.rollback().await?;
        let detail = match (self.expected, affected) {
            (Affects(expected), Ok(affected)) if affected == expected => return Ok(None),
            (NoEffect, Ok(0) | Err(_)) => return Ok(None),
            (NoEffect, Ok(_)) => format!("{who} can {}", self.description),
            (Affects(expected), Ok(affected)) => {
                format!("{who} cannot {}: {affected} rows affected, expected {expected}", self.description)
            }
            (Affects(_), Err(error)) => format!("{who} cannot {}: {}", self.description, reason(&error)),
        };
        Ok(Some(Finding::failed(format!("trial as {who}"), detail)))
    }
}

fn reason(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}
