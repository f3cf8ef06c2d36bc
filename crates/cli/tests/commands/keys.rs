//! Keys of clients of the server.

use super::Cli;

#[test]
fn keys_are_created_listed_rotated_and_revoked() {
    let cli = Cli::new();
    let made = cli.json(&["keys", "create", "phone", "--for-user", "ana", "--role", "read", "--role", "write"]);
    assert_eq!((made["user"].as_str(), made["tenant"].as_str()), (Some("ana"), Some("local")));
    assert_eq!(made["roles"], serde_json::json!(["read", "write"]));
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    assert!(key.starts_with(&format!("tk_{id}_")));
    assert!(!cli.contains_bytes(&key.as_bytes()[20..]), "the store does not contain the secret");
    let listed = cli.out(&["keys", "list"]);
    assert!(listed.contains(id) && listed.contains("ana") && !listed.contains(key), "{listed}");
    let rotated = cli.json(&["keys", "rotate", id]);
    assert_ne!(rotated["key"], made["key"]);
    assert_eq!(cli.run(&["--tenant", "other", "keys", "revoke", id]).code, Some(1));
    assert!(cli.out(&["keys", "revoke", id]).starts_with("revoked "));
    assert!(cli.json(&["keys", "list"])["keys"][0]["revoked_at"].is_string());
    assert_eq!(cli.run(&["keys", "rotate", id]).code, Some(2));
    assert_eq!(cli.out(&["--tenant", "other", "keys", "list"]), "no keys\n");
    assert_eq!(cli.run(&["--tenant", "threadkeep", "keys", "create", "x"]).code, Some(2));
    assert_eq!(cli.run(&["keys", "create", "x", "--role", "king"]).code, Some(2));
}

#[test]
fn the_audit_log_records_changes_of_keys() {
    let cli = Cli::new();
    let made = cli.json(&["keys", "create", "phone", "--quota", "1000"]);
    assert_eq!(made["quota_per_day"], 1000);
    assert!(cli.out(&["keys", "list"]).contains("1000/day"));
    let id = made["id"].as_str().unwrap();
    cli.out(&["keys", "rotate", id]);
    cli.out(&["keys", "revoke", id]);
    let log = cli.json(&["audit"]);
    let acts: Vec<&str> =
        log["records"].as_array().unwrap().iter().map(|record| record["act"].as_str().unwrap()).collect();
    assert_eq!(acts, ["keys create", "keys rotate", "keys revoke"]);
    assert!(log["records"].as_array().unwrap().iter().all(|record| record["target"] == id), "{log}");
    let secret = made["key"].as_str().unwrap();
    assert!(!log.to_string().contains(secret.rsplit('_').next().unwrap()));
    assert!(cli.out(&["audit", "--limit", "1"]).contains("keys revoke"));
    assert_eq!(cli.json(&["audit", "--tenant", "other"])["records"], serde_json::json!([]));
}
