//! The objects and logs that a cluster starts with.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The maximum size of a file, in bytes.
const FILE_BYTES: u64 = 8 << 20;
/// The maximum number of objects in a folder.
const MAX_OBJECTS: usize = 20_000;

/// The objects of a cluster, and the logs of its pods.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// The objects, each with `apiVersion`, `kind` and `metadata.name`.
    pub objects: Vec<Value>,
    /// The logs, by [`log_key`].
    pub logs: BTreeMap<String, String>,
}

/// Returns the key of a pod's log. The key of the previous container's log has the suffix `.previous`.
#[must_use]
pub fn log_key(namespace: &str, pod: &str, is_previous: bool) -> String {
    format!("{namespace}/{pod}{}", if is_previous { ".previous" } else { "" })
}

/// Why a folder cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// A file or folder cannot be read.
    #[error("{} cannot be read: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The error.
        error: std::io::Error,
    },
    /// A file is larger than the limit.
    #[error("{} is larger than {FILE_BYTES} bytes", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// A file contains neither JSON nor YAML.
    #[error("{}: {reason}", file.display())]
    Invalid {
        /// The file.
        file: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The folder has more objects than the limit.
    #[error("the folder has more than {MAX_OBJECTS} objects")]
    TooMany,
}

impl World {
    /// Reads a folder: objects in files that end in `.yaml`, `.yml` or `.json` (a file may contain several objects, and lists of objects),
    /// and logs in `logs/NAMESPACE/POD.log` and `logs/NAMESPACE/POD.previous.log`; of one container in `POD.CONTAINER.log`.
    ///
    /// # Errors
    /// The first file that cannot be read, with the reason.
    pub fn read(folder: &Path) -> Result<Self, WorldError> {
        let mut world = Self::default();
        for file in files_of(folder)? {
            let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            match extension {
                "json" | "yaml" | "yml" => {
                    let invalid = |reason: String| WorldError::Invalid { file: file.clone(), reason };
                    let text = text_of(&file)?;
                    world.objects.extend(documents(&text, extension == "json").map_err(invalid)?);
                }
                "log" => {
                    let namespace = file.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
                    let pod = file.file_stem().unwrap_or_default().to_string_lossy();
                    world.logs.insert(format!("{namespace}/{pod}"), text_of(&file)?);
                }
                _ => {}
            }
            if world.objects.len() > MAX_OBJECTS {
                return Err(WorldError::TooMany);
            }
        }
        Ok(world)
    }
}

/// Returns the files of a folder and its subfolders, sorted by path.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, WorldError> {
    let unreadable = |error| WorldError::Unreadable { file: folder.to_owned(), error };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.sort();
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            files.extend(files_of(&path)?);
        } else {
            files.push(path);
        }
    }
    Ok(files)
}

fn text_of(file: &Path) -> Result<String, WorldError> {
    let unreadable = |error| WorldError::Unreadable { file: file.to_owned(), error };
    if std::fs::metadata(file).map_err(unreadable)?.len() > FILE_BYTES {
        return Err(WorldError::TooLarge { file: file.to_owned() });
    }
    std::fs::read_to_string(file).map_err(unreadable)
}

/// Parses the objects of a file. The members of lists and arrays become separate objects.
fn documents(text: &str, is_json: bool) -> Result<Vec<Value>, String> {
    let documents: Vec<Value> = if is_json {
        serde_json::Deserializer::from_str(text)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error: serde_json::Error| error.to_string())?
    } else {
        let parsed = serde_saphyr::from_multiple(text);
        parsed.map_err(|error| error.to_string().lines().next().unwrap_or("invalid YAML").to_owned())?
    };
    let mut objects = Vec::new();
    for document in documents.into_iter().filter(|document| !document.is_null()) {
        match document["items"].as_array() {
            None if document.is_array() => objects.extend(document.as_array().into_iter().flatten().cloned()),
            Some(items) if document["kind"].as_str().is_some_and(|kind| kind.ends_with("List")) => {
                objects.extend(items.iter().cloned());
            }
            _ => objects.push(document),
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_objects_and_logs() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("logs/prod")).unwrap();
        std::fs::write(
            folder.path().join("a.yaml"),
            "kind: Pod\nmetadata: {name: a}\n---\nkind: Pod\nmetadata: {name: b}\n",
        )
        .unwrap();
        std::fs::write(
            folder.path().join("b.json"),
            r#"{"kind":"PodList","items":[{"kind":"Pod","metadata":{"name":"c"}}]}"#,
        )
        .unwrap();
        std::fs::write(folder.path().join("bb.json"), r#"[{"kind":"Pod","metadata":{"name":"d"}}]"#).unwrap();
        std::fs::write(folder.path().join("logs/prod/a.previous.log"), "bye\n").unwrap();
        let world = World::read(folder.path()).unwrap();
        let names: Vec<_> = world.objects.iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        assert_eq!(world.logs[&log_key("prod", "a", true)], "bye\n");
        std::fs::write(folder.path().join("c.json"), "{").unwrap();
        let error = World::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("c.json"), "{error}");
    }
}
