//! One suite for every place that files may stand in.

use std::collections::BTreeMap;

use bytes::Bytes;
use certify::shelf::{Form, Shelf};
use futures::TryStreamExt as _;
use testkit::CountingRandom;

use crate::shelf_places::{Place, all};

const SLUG: &str = "0123456789abcdef0123456789abcdef01234567";

fn files(text: &str) -> [Bytes; 3] {
    Form::ALL.map(|form| Bytes::from(format!("{text} {}", form.extension()).repeat(500)))
}

async fn stands(shelf: &Shelf) -> Vec<Option<Bytes>> {
    let mut found = Vec::new();
    for form in Form::ALL {
        found.push(shelf.get(SLUG, form).await.expect("a look"));
    }
    found
}

async fn listed(shelf: &Shelf) -> BTreeMap<String, usize> {
    let mut slugs = BTreeMap::new();
    for (slug, _) in shelf.slugs().try_collect::<Vec<_>>().await.expect("a list") {
        *slugs.entry(slug).or_default() += 1;
    }
    slugs
}

#[tokio::test]
async fn what_is_put_stands_whole_until_it_is_replaced_or_removed() {
    for place in all().await {
        let (name, shelf) = (place.name(), place.shelf().await);
        assert_eq!(stands(&shelf).await, [None, None, None], "{name}");
        for text in ["first", "second, longer than the first", "last"] {
            shelf.put_all(SLUG, &files(text)).await.expect("put");
            assert_eq!(stands(&place.shelf().await).await, files(text).map(Some), "{name}");
        }
        shelf.put(SLUG, Form::Zip, b"alone".to_vec()).await.expect("put");
        assert_eq!(shelf.get(SLUG, Form::Zip).await.expect("a look"), Some("alone".into()), "{name}");
        assert_eq!(shelf.sync(vec![SLUG.into()]).await.expect("synced"), Vec::<String>::new(), "{name}");
        for form in Form::ALL.into_iter().chain(Form::ALL) {
            shelf.remove(SLUG, form).await.expect("removed, or not there");
        }
        assert_eq!(stands(&shelf).await, [None, None, None], "{name}");
        shelf.probe().await.expect("ready");
        assert_eq!(shelf.sweep().expect("swept"), 0, "{name}");
    }
}

#[tokio::test]
async fn eight_servers_that_put_the_same_file_all_succeed() {
    for place in all().await {
        let name = place.name();
        let servers = futures::future::join_all((0..8).map(|_| place.shelf())).await;
        for round in 0..10 {
            let text = format!("round {round}");
            let slug = format!("{round:040x}");
            let created = match &place {
                Place::Bucket(bucket) => bucket.server.created(),
                _ => 0,
            };
            let puts = servers.iter().map(async |shelf| shelf.put_new(&slug, &files(&text)).await);
            for put in futures::future::join_all(puts).await {
                assert_eq!(put.expect("put"), [], "{name}");
            }
            if let Place::Bucket(bucket) = &place {
                assert_eq!(bucket.server.created() - created, 3, "each file once");
            }
            for (form, bytes) in Form::ALL.iter().zip(files(&text)) {
                assert_eq!(servers[0].get(&slug, *form).await.expect("a look"), Some(bytes), "{name}");
            }
        }
    }
}

#[tokio::test]
async fn eight_servers_that_put_different_files_leave_one_of_them_whole() {
    for place in all().await {
        let servers = futures::future::join_all((0..8).map(|_| place.shelf())).await;
        for round in 0..4 {
            let all: Vec<_> = (0..8).map(|server| files(&format!("{round} of {server}"))).collect();
            let puts = servers.iter().zip(&all).map(async |(shelf, files)| shelf.put_all(SLUG, files).await);
            for put in futures::future::join_all(puts).await {
                put.unwrap_or_else(|cause| panic!("{}: {cause}", place.name()));
            }
            for (at, stands) in stands(&servers[0]).await.into_iter().enumerate() {
                assert!(all.iter().any(|files| Some(&files[at]) == stands.as_ref()), "{}", place.name());
            }
        }
    }
}

#[tokio::test]
async fn other_bytes_stay_in_a_bucket_until_they_are_known_to_be_wrong() {
    for place in all().await {
        let shelf = place.shelf().await;
        shelf.put_all(SLUG, &files("another server's")).await.expect("put");
        let others = shelf.put_new(SLUG, &files("ours")).await.expect("put");
        match place {
            Place::Own(_) | Place::Shared(..) => {
                assert_eq!((others.len(), stands(&shelf).await), (0, files("ours").map(Some).to_vec()));
            }
            Place::Bucket(_) | Place::Foreign(_) => {
                let theirs = files("another server's").map(Some);
                assert_eq!((others, stands(&shelf).await), (Form::ALL.to_vec(), theirs.to_vec()));
                shelf.put_all(SLUG, &files("ours")).await.expect("put");
                assert_eq!(stands(&shelf).await, files("ours").map(Some));
            }
        }
    }
}

#[tokio::test]
async fn every_certificate_is_listed_over_all_pages_and_nothing_else() {
    for place in all().await {
        let shelf = place.shelf().await;
        let slugs: Vec<_> = (0..350).map(|number| format!("{number:040x}")).collect();
        place.lay(&slugs).await;
        for other in ["index", "", "UPPER", "../up"] {
            // Some are no name at all in some places, and then they are refused.
            let _ = shelf.put(other, Form::Html, b"<p>".to_vec()).await;
        }
        let all: BTreeMap<_, _> = slugs.into_iter().map(|slug| (slug, 3)).collect();
        assert_eq!(listed(&shelf).await, all, "{}", place.name());
    }
}

#[tokio::test]
async fn a_shared_folder_keeps_young_leftovers_and_drops_old_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let random = CountingRandom::default();
    let shelf = Shelf::open_shared(folder.path(), &random).expect("a shelf");
    let aside = folder.path().join(".part");
    let leftover = |name: &str, hours: u64| {
        std::fs::write(aside.join(name), "half").expect("a leftover");
        let past = std::time::Duration::from_secs(hours * 3600);
        let now = std::fs::metadata(aside.join(name)).and_then(|meta| meta.modified()).expect("a time");
        let file = std::fs::File::options().write(true).open(aside.join(name)).expect("a leftover");
        file.set_modified(now - past).expect("aged");
    };
    leftover("paused.html#another-0", 23);
    leftover("dead.html#another-1", 25);
    assert_eq!(shelf.sweep().expect("swept"), 1);
    leftover("dead.html#another-2", 25);
    shelf.sync(Vec::new()).await.expect("synced");
    let kept: Vec<_> =
        std::fs::read_dir(&aside).expect("a list").map(|entry| entry.expect("a file").file_name()).collect();
    assert_eq!(kept, ["paused.html#another-0"]);
    assert_eq!(listed(&shelf).await, BTreeMap::new());
}

#[tokio::test]
async fn servers_of_a_shared_folder_never_write_to_the_same_unfinished_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let random = CountingRandom::default();
    let one = Shelf::open_shared(folder.path(), &random).expect("a shelf");
    let two = Shelf::open_shared(folder.path(), &random).expect("a shelf");
    // With the name taken, a rename fails, and what was written aside is taken away again.
    std::fs::create_dir(folder.path().join(format!("{SLUG}.html"))).expect("in the way");
    for shelf in [&one, &two] {
        let failed = shelf.put(SLUG, Form::Html, b"x".to_vec()).await.expect_err("in the way").to_string();
        assert!(failed.starts_with(&format!("writing {SLUG}.html: ")), "{failed}");
    }
    assert_eq!(std::fs::read_dir(folder.path().join(".part")).expect("a list").count(), 0);
    assert_eq!(one.sync(vec![SLUG.into()]).await.expect("a look"), [SLUG], "two forms are missing");
}

#[test]
fn a_shared_folder_that_is_not_mounted_is_not_made() {
    let folder = tempfile::tempdir().expect("a folder");
    let absent = folder.path().join("mnt");
    let failed = Shelf::open_shared(&absent, &CountingRandom::default()).expect_err("not there").to_string();
    assert!(failed.contains("mount it or make it") && !absent.exists(), "{failed}");
}
