use super::Cli;

/// Returns the input lines of the transcript in docs/slack.md.
fn inputs(transcript: &str) -> String {
    let users = ["alice: ", "bob: "];
    let lines = transcript.lines().filter_map(|line| users.iter().find_map(|user| line.strip_prefix(user)));
    lines.map(|line| format!("{line}\n")).collect()
}

// S4.34, S4.46, S4.47
#[test]
fn documented_transcript_matches_the_simulation() {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/slack.md")).unwrap();
    let (_, rest) = docs.split_once("````text\n#ops").unwrap();
    let (transcript, _) = rest.split_once("\n````\n").unwrap();
    let cli = Cli::new();
    let output = cli.run_with_input(&["slack", "simulate"], inputs(transcript).as_bytes());
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(output.out.trim_end(), format!("#ops{transcript}").trim_end());
    assert!(!cli.store().exists(), "the simulation has a store of its own");
}

#[test]
fn several_requests_of_a_message_are_shown_and_decided() {
    let input = b"restart cache in prod and scale web in prod to 3\n/as bob\n/approve\n/approve\n/quit\n";
    let output = Cli::new().run_with_input(&["slack", "simulate"], input);
    assert_eq!(output.code, Some(0), "{output}");
    for line in [
        "`kubectl rollout restart deployment/cache -n prod`\nDry run",
        "`kubectl scale deployment web --replicas=3 -n prod`\nDry run",
        "Done: deployment cache restarted",
        "Done: deployment web scaled to 3 replicas",
    ] {
        assert!(output.out.contains(line), "{line}: {output}");
    }
}

#[test]
fn a_folder_with_objects_is_a_cluster() {
    let cli = Cli::new();
    std::fs::create_dir(cli.path("cluster")).unwrap();
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: lonely, namespace: lab}\nspec: {containers: [{name: main, image: lab:1}]}\nstatus: {phase: Running}\n";
    cli.file("cluster/pod.yaml", format!("{pod}---\napiVersion: v9\nkind: Wonder\nmetadata: {{name: x}}\n"));
    let output =
        cli.run_with_input(&["slack", "simulate", "cluster"], b"list pods in lab\n/as bob\n/approve\n/frown\n/quit\n");
    assert!(
        output.code == Some(0) && output.out.contains("There is 1 pod in the lab namespace:\n- lonely"),
        "{output}"
    );
    assert!(output.err.contains("not loaded: Wonder x: no kind Wonder in v9"), "{output}");
    assert!(
        output.out.contains("there is no request yet") && output.out.contains("unknown command /frown"),
        "{output}"
    );
    let missing = cli.run(&["slack", "simulate", "nowhere"]);
    assert!(missing.code == Some(1) && missing.err.contains("nowhere cannot be read"), "{missing}");
}

#[test]
fn the_manifest_is_json_with_the_urls_of_the_server() {
    let cli = Cli::new();
    let manifest = cli.json(&["slack", "manifest", "https://bot.example.com/", "--name", "ops"]);
    assert_eq!(manifest["settings"]["interactivity"]["request_url"], "https://bot.example.com/slack/interactions");
    let refused = cli.run(&["slack", "manifest", "http://bot.example.com"]);
    assert!(refused.code == Some(2) && refused.err.contains("not an https URL"), "{refused}");
}
