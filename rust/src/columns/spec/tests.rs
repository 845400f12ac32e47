use super::*;

/// Tables that together use all rules and types. Their first column is `offset`.
pub const TABLES: [&str; 3] = [
    "offset int offset\npath text path\ntype text first type\nsubtype text first subtype\nuuid text first uuid\n\
     session_id text first sessionId session_id\nsource text if transcript sessionId stream session_id\n\
     text text joined message.content attachment.prompt content\nid text first message.id\nat time first timestamp\nside bool first isSidechain\n\
     cost float first total_cost_usd totalCostUSD\nmodels json first modelUsage",
    "!where assistant user attachment\n!each message.content attachment.prompt\noffset int offset\nuuid text first uuid\nblock int index\n\
     kind text kind *.type\ntext text joined *.text *.thinking *.content\ntool text first *.id *.tool_use_id\n\
     input json first *.input\nis_error bool first *.is_error",
    "!where assistant\n!need assistant message.usage\noffset int offset\nid text first message.id\n\
     input int first message.usage.input_tokens\nfive int first message.usage.cache_creation.ephemeral_5m_input_tokens",
];

#[test]
fn an_invalid_spec_is_refused() {
    for text in TABLES {
        let spec = Spec::new(text).unwrap();
        assert_eq!(
            spec.types().len(),
            text.lines().filter(|it| !it.starts_with('!')).count()
        );
    }
    let many: Vec<_> = (0..99)
        .map(|number| format!("c{number} int first k{number}"))
        .collect();
    for text in [
        "a",
        "a int",
        "a integer first b",
        "a int last b",
        "!need",
        "!need assistant",
        "!each",
        &many.join("\n"),
    ] {
        assert!(Spec::new(text).is_none(), "{text}");
    }
    let spec = Spec::new(TABLES[1]).unwrap();
    assert_eq!((spec.types.len(), spec.need, spec.each.len()), (3, None, 2));
    assert_eq!(spec.columns[4].name, "text");
    assert!(matches!(&spec.columns[4].rule, Rule::Joined(places) if places.len() == 3));
}
