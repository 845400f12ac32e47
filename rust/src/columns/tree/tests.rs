use super::*;

#[test]
fn a_key_is_found_only_in_its_object() {
    let mut tree = Tree::default();
    let paths = [
        "type",
        "message.id",
        "message.usage.n",
        "message",
        "id",
        "type",
    ];
    let slots = paths.map(|path| tree.want(path).unwrap());
    assert_eq!(slots, [0, 2, 4, 1, 5, 0]);
    assert_eq!(tree.slots(), 6);
    let slot = |node, name: &[u8]| tree.key_of(node, name).map(|key| key.slot);
    let message = tree.key_of(0, b"message").unwrap().inner.unwrap();
    let usage = tree.key_of(message, b"usage").unwrap().inner.unwrap();
    assert_eq!((slot(0, b"id"), slot(message, b"id")), (Some(5), Some(2)));
    assert_eq!((slot(usage, b"n"), slot(usage, b"id")), (Some(4), None));
    assert_eq!((tree.parent(usage), tree.parent(message)), (message, 0));
    for name in [&b""[..], b"typ", b"typf", b"TYPE"] {
        assert_eq!(slot(0, name), None);
    }
    assert_eq!(tree.key_of_escaped(0, br"typ\u0065").unwrap().slot, 0);
    for name in [
        &br"typ\u0066"[..],
        br"typ\u00e9",
        "\u{e9}\\u0065".as_bytes(),
        br"\ud83d",
    ] {
        assert!(tree.key_of_escaped(0, name).is_none());
    }
}

#[test]
fn keys_with_the_same_hash_are_all_found() {
    let mut tree = Tree::default();
    let names: Vec<_> = (0..MAX_SLOTS)
        .map(|number| format!("k{number:02}k"))
        .collect();
    for name in &names {
        assert!(tree.want(name).is_some());
    }
    assert!(tree.want("one.more").is_none());
    for (slot, name) in names.iter().enumerate() {
        assert_eq!(
            usize::from(tree.key_of(0, name.as_bytes()).unwrap().slot),
            slot
        );
    }
}
