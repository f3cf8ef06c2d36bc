//! Starts a local Kubernetes API server for tests in other languages: `cluster FOLDER KUBECONFIG` loads the objects of a folder,
//! writes a kubeconfig and prints its path. At the end of the input, stops the server.

use std::io::Write;
use std::path::PathBuf;

use threadkeep_simulator::cluster::{Cluster, World};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [folder, kubeconfig] = arguments.as_slice() else { return Err("usage: cluster FOLDER KUBECONFIG".into()) };
    let cluster = Cluster::start(World::read(folder)?).await?;
    std::fs::write(kubeconfig, cluster.kubeconfig())?;
    writeln!(std::io::stdout(), "{}", kubeconfig.display())?;
    std::io::stdout().flush()?;
    // The server runs on this thread, so the input is read on another one.
    let (closed, input_end) = tokio::sync::oneshot::channel::<()>();
    std::thread::spawn(move || {
        drop(std::io::copy(&mut std::io::stdin(), &mut std::io::sink()));
        drop(closed);
    });
    drop(input_end.await);
    Ok(())
}
