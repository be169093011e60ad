//! A header either is refused or, where this build knows all its fields, comes back to the byte.

#![no_main]

use libfuzzer_sys::fuzz_target;

/// As many as alloy's header has; what a later fork appends is passed over and does not come back.
const FIELDS_KNOWN: usize = 23;

fuzz_target!(|data: &[u8]| {
    let Ok(header) = chain::decode_header(data) else { return };
    let mut rest = data;
    let list = alloy_rlp::Header::decode_bytes(&mut rest, true);
    let mut payload = list.expect("a header that was accepted is a list");
    let mut field_count = 0;
    while !payload.is_empty() {
        let field = alloy_rlp::Header::decode(&mut payload).expect("its fields are RLP");
        payload = &payload[field.payload_length..];
        field_count += 1;
    }
    if field_count <= FIELDS_KNOWN {
        assert_eq!(alloy_rlp::encode(&header), data);
    }
});
