//! Users, tenants and quotas, for administrators.

use serde_json::{Value, json};
use threadkeep_server::{KeyRole, Quota, ServerOptions};

use super::files::upload;
use crate::TestServer;
use crate::server::{Client, TestConfig};

fn names(page: &Value, member: &str) -> Vec<String> {
    page["data"].as_array().unwrap().iter().map(|entry| entry[member].as_str().unwrap().to_owned()).collect()
}

async fn users(admin: &Client) -> Vec<String> {
    names(&admin.get("/v1/users").await.expect(200), "user")
}

#[tokio::test]
async fn administrators_list_and_erase_the_users_of_their_tenant() {
    let server = TestServer::start().await;
    let admin = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let other = server.client_with_new_key("other", None, &[KeyRole::Admin]).await;
    assert_eq!(users(&admin).await, Vec::<String>::new());
    let ana = admin.as_user("ana");
    ana.say(&ana.new_thread().await, "hello").await;
    admin.as_user("ben").send("PUT", "/v1/preferences/home", json!({ "value": "14 St" })).await.expect(200);
    upload(&admin.as_user("cleo"), "a.md", b"# A", &[]).await.expect(200);
    other.as_user("eve").new_thread().await;
    assert_eq!(
        (users(&admin).await, users(&other).await),
        (vec!["ana".into(), "ben".into(), "cleo".into()], vec!["eve".into()])
    );
    // The list is read in pages.
    let (mut paged, mut path) = (Vec::new(), "/v1/users?limit=2".to_owned());
    loop {
        let page = admin.get(&path).await.expect(200);
        paged.extend(names(&page, "user"));
        let Some(next) = page["next"].as_str() else { break };
        assert_eq!(other.get(&format!("/v1/users?after={next}")).await.code(400), "invalid_cursor");
        path = format!("/v1/users?limit=2&after={next}");
    }
    assert_eq!(paged, ["ana", "ben", "cleo"]);
    let details = admin.get("/v1/users/ana").await.expect(200);
    assert_eq!((&details["user"], &details["threads"], &details["messages"]), (&json!("ana"), &json!(1), &json!(1)));
    for unknown in ["eve", "zoe"] {
        assert_eq!(admin.get(&format!("/v1/users/{unknown}")).await.code(404), "not_found");
    }
    let erased = admin.delete("/v1/users/ana").await.expect(200);
    assert_eq!((&erased["threads"], &erased["messages"], &erased["swept"]), (&json!(1), &json!(1), &json!(true)));
    admin.delete("/v1/users/cleo?shared_messages=true").await.expect(200);
    assert_eq!(users(&admin).await, ["ben"]);
    // Erasing a user who has the name of another tenant's user does not affect the other tenant.
    admin.delete("/v1/users/eve").await.expect(200);
    assert_eq!(users(&other).await, ["eve"]);
    assert_eq!(admin.delete("/v1/users/ben?shared=true").await.code(400), "unknown_parameter");
    let log = admin.get("/v1/audit").await;
    let acts = names(&log.expect(200), "act");
    assert!(acts.contains(&"DELETE /v1/users/{user}".to_owned()), "{acts:?}");
    assert!(!log.text.contains("cleo"), "the log contains no names");
    // Users, and keys without the role, may not manage users or quotas.
    let writer = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    for (client, code) in [(admin.as_user("ben"), "tenant_key_required"), (writer, "role_missing")] {
        for path in ["/v1/users", "/v1/users/ben", "/v1/quotas"] {
            assert_eq!(client.get(path).await.code(403), code, "{path}");
        }
        assert_eq!(client.delete("/v1/users/ben").await.code(403), code);
    }
    assert_eq!(users(&admin).await, ["ben"]);
}

#[tokio::test]
async fn operators_list_the_tenants_of_the_server() {
    let server = TestServer::start().await;
    let operator = server.client_with_new_key("monitoring", None, &[KeyRole::Operate]).await;
    for tenant in ["acme", "beta"] {
        server.client_with_new_key(tenant, None, &[KeyRole::Admin]).await.new_thread().await;
    }
    let admin = server.client_with_new_key("beta", None, &[KeyRole::Admin]).await;
    let tenants = operator.get("/v1/tenants").await.expect(200);
    let expected = [("acme", 1), ("beta", 2), ("monitoring", 1)];
    let expected: Vec<Value> =
        expected.iter().map(|(tenant, keys)| json!({ "tenant": tenant, "keys": keys })).collect();
    assert_eq!(tenants, json!({ "data": expected, "next": null }));
    let (mut paged, mut path) = (Vec::new(), "/v1/tenants?limit=1".to_owned());
    loop {
        let page = operator.get(&path).await.expect(200);
        paged.extend(names(&page, "tenant"));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/tenants?limit=1&after={next}");
    }
    assert_eq!(paged, ["acme", "beta", "monitoring"]);
    assert_eq!(admin.get("/v1/tenants").await.code(403), "role_missing");
    assert_eq!(operator.get("/v1/tenants?limit=0").await.status, 400);
    assert_eq!(operator.get("/v1/users").await.code(403), "role_missing");
}

#[tokio::test]
async fn limits_of_keys_are_listed_and_changed() {
    let config = TestConfig::default();
    let options = ServerOptions { quota: Some(Quota { per_day: 1000 }), ..config.options };
    let server = TestServer::start_with(TestConfig { options, ..config }).await;
    let admin = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let other = server.client_with_new_key("other", None, &[KeyRole::Admin]).await;
    let created =
        admin.post("/v1/keys", json!({ "name": "phone", "user": "ana", "quota": 3, "rate": 60 })).await.expect(201);
    let id = created["key"]["id"].as_str().unwrap();
    let phone = server.anonymous_client().with_key(created["secret"].as_str().unwrap());
    let quota_of = async |id: &str| {
        let listed = admin.get("/v1/quotas").await.expect(200);
        assert!(listed["resets_at"].as_str().unwrap().contains("T00:00:00"), "{listed}");
        listed["data"].as_array().unwrap().iter().find(|key| key["key"] == id).cloned()
    };
    phone.get("/v1/threads").await.expect(200);
    phone.get("/v1/threads").await.expect(200);
    let limits = quota_of(id).await.unwrap();
    assert_eq!((&limits["quota"], &limits["used"], &limits["remaining"]), (&json!(3), &json!(2), &json!(1)));
    assert_eq!((&limits["rate"], &limits["user"], &limits["name"]), (&json!(60), &json!("ana"), &json!("phone")));
    phone.get("/v1/threads").await.expect(200);
    assert_eq!(phone.get("/v1/threads").await.code(429), "quota_exceeded");
    let path = format!("/v1/keys/{id}");
    let changed = admin.send("PATCH", &path, json!({ "quota": 5.0, "name": "tablet", "rate": null })).await.expect(200);
    assert_eq!((&changed["quota"], &changed["name"], &changed["rate"]), (&json!(5), &json!("tablet"), &json!(null)));
    assert_eq!((&changed["user"], &changed["roles"]), (&json!("ana"), &json!(["write"])));
    phone.get("/v1/threads").await.expect(200);
    assert_eq!(quota_of(id).await.unwrap()["remaining"], 1);
    // The server's default applies to keys without a quota.
    admin.send("PATCH", &path, json!({ "quota": null })).await.expect(200);
    assert_eq!(quota_of(id).await.unwrap()["quota"], 1000);
    let reduced = admin.send("PATCH", &path, json!({ "roles": ["read"], "expires_at": "2100-01-01T00:00:00Z" })).await;
    assert_eq!(reduced.expect(200)["roles"], json!(["read"]));
    assert_eq!(phone.post("/v1/threads", json!({})).await.code(403), "role_missing");
    for wrong in [
        json!({ "quota": 0 }),
        json!({ "rate": 1.5 }),
        json!({ "name": "" }),
        json!({ "roles": [] }),
        json!({ "x": 1 }),
    ] {
        assert_eq!(admin.send("PATCH", &path, wrong).await.status, 400);
    }
    assert_eq!(admin.send("PATCH", &path, json!({ "roles": ["operate"] })).await.code(403), "role_missing");
    // Another tenant neither sees nor changes the key.
    assert_eq!(other.send("PATCH", &path, json!({ "name": "mine" })).await.code(404), "not_found");
    let listed = other.get("/v1/quotas").await.expect(200);
    assert_eq!(names(&listed, "name"), ["test"]);
    admin.delete(&path).await.expect(200);
    assert_eq!(quota_of(id).await, None);
    assert_eq!(admin.send("PATCH", &path, json!({ "name": "back" })).await.status, 400);
}
