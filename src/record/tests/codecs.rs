//! The codecs' framings: the bytes we write, what others write, and what is refused.

use super::*;

fn sample() -> Vec<u8> {
    let mut state = 1u32;
    let noise = std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    });
    let text = b"the quick brown fox jumps over the lazy dog, ".iter().copied().cycle();
    text.take(150_000).chain(noise.take(70_000)).chain(std::iter::repeat_n(0, 200_000)).collect()
}

fn packed(codec: Codec, input: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    compress(codec.into(), input, &mut out).unwrap();
    out
}

fn unpacked(codec: Codec, input: &[u8]) -> Result<Vec<u8>, BatchError> {
    let mut out = Vec::new();
    decompress(codec, input, &mut out, 1 << 24).map(|()| out)
}

#[test]
fn all_codecs_and_levels_give_the_input_back() {
    let sample = sample();
    for compression in
        ["none", "gzip", "gzip:1", "gzip:9", "snappy", "lz4", "lz4:17", "zstd", "zstd:-5", "zstd:9"]
    {
        let compression: Compression = compression.parse().unwrap();
        if !compression.codec().is_available() {
            continue;
        }
        let mut compressor = Compressor::default();
        for length in [0, 1, 100, 32 * 1024, 64 * 1024 + 1, sample.len()] {
            let mut out = b"before".to_vec();
            compressor.compress(compression, &sample[..length], &mut out).unwrap();
            assert_eq!(&out[..6], b"before");
            assert_eq!(
                unpacked(compression.codec(), &out[6..]).unwrap(),
                &sample[..length],
                "{compression} {length}"
            );
        }
    }
}

#[test]
fn a_missing_codec_is_named_and_its_bytes_pass_through() {
    for codec in Codec::ALL.into_iter().filter(|codec| !codec.is_available()) {
        let missing = BatchError::CodecMissing { codec };
        assert_eq!(unpacked(codec, b"whatever"), Err(missing.clone()));
        assert_eq!(compress(codec.into(), b"whatever", &mut Vec::new()), Err(missing.clone()));
        let mut batch = encoded(&[Record::value_only(b"v")], &BatchOptions::default());
        batch[22] = codec.id();
        mend(&mut batch);
        let parsed = BatchRef::parse(&batch).unwrap();
        parsed.validate_for_append().unwrap();
        assert_eq!(parsed.records(&mut Scratch::new()).unwrap_err(), missing);
        assert!(missing.to_string().contains(codec.name()));
    }
}

#[test]
fn every_cut_and_every_byte_more_is_refused() {
    let sample = &sample()[100_000..151_000];
    for codec in available().filter(|codec| *codec != Codec::None) {
        let whole = packed(codec, sample);
        for cut in (0..64).chain((64..whole.len()).step_by(13)).chain(whole.len() - 20..whole.len()) {
            match unpacked(codec, &whole[..cut]) {
                // A snappy stream has no end of its own: whole blocks are all it takes. The count of records tells.
                Ok(part) if codec == Codec::Snappy => assert!(part.len() % (32 * 1024) == 0, "cut at {cut}"),
                Ok(part) => panic!("{codec} cut at {cut} gave {} bytes", part.len()),
                Err(_) => {}
            }
        }
        for more in [&b"\0"[..], b"garbage that is no stream"] {
            let longer = [&whole, more].concat();
            assert!(unpacked(codec, &longer).is_err(), "{codec} with {more:?} after it");
        }
    }
}

#[test]
fn a_bomb_is_stopped_early() {
    let zeros = vec![0; 64 << 20];
    for codec in available().filter(|codec| *codec != Codec::None) {
        let bomb = packed(codec, &zeros);
        let mut out = Vec::new();
        let limit = 1 << 20;
        let refused = Err(BatchError::TooLargeDecompressed { limit });
        assert_eq!(decompress(codec, &bomb, &mut out, limit), refused, "{codec}");
        assert!(out.capacity() <= 4 << 20, "{codec} took {}", out.capacity());
        out.clear();
        decompress(codec, &bomb, &mut out, 64 << 20).unwrap();
        assert_eq!(out.len(), 64 << 20);
        out.clear();
        assert!(decompress(codec, &bomb, &mut out, (64 << 20) - 1).is_err());
        assert!(decompress(codec, &packed(codec, &[]), &mut Vec::new(), 0).is_ok());
        assert!(decompress(codec, &packed(codec, b"x"), &mut Vec::new(), 0).is_err());
    }
}

#[test]
fn a_scratch_bounds_what_a_batch_unpacks_to() {
    for codec in available().filter(|codec| *codec != Codec::None) {
        let batch = built(&[Record::value_only(&vec![0; 500_000])], &options_with(codec));
        let parsed = BatchRef::parse(&batch).unwrap();
        let mut scratch = Scratch::with_limit(100_000);
        let refused = BatchError::TooLargeDecompressed { limit: 100_000 };
        assert_eq!(parsed.records(&mut scratch).unwrap_err(), refused);
        scratch.limit_bytes = 600_000;
        parsed.check_records(&mut scratch).unwrap();
    }
}

#[cfg(feature = "gzip")]
#[test]
fn gzip_is_written_like_java_and_read_in_several_members() {
    let one = packed(Codec::Gzip, b"one, ");
    assert_eq!(one[..10], hex("1f8b08000000000000ff"));
    let both = [one, packed(Codec::Gzip, b"two")].concat();
    assert_eq!(unpacked(Codec::Gzip, &both).unwrap(), b"one, two");
}

#[cfg(feature = "snappy")]
#[test]
fn snappy_is_written_framed_and_read_framed_and_bare() {
    let sample = sample();
    let framed = packed(Codec::Snappy, &sample);
    assert_eq!(framed[..16], hex("82534e41505059 00 00000001 00000001"));
    let block = i32::from_be_bytes(framed[16..20].try_into().unwrap());
    let first = &framed[20..][..usize::try_from(block).unwrap()];
    assert_eq!(snap::raw::decompress_len(first), Ok(32 * 1024));
    let bare = snap::raw::Encoder::new().compress_vec(&sample).unwrap();
    assert_eq!(unpacked(Codec::Snappy, &bare).unwrap(), sample);
    let twice = [framed.as_slice(), &framed].concat();
    assert_eq!(unpacked(Codec::Snappy, &twice).unwrap(), [sample.as_slice(), &sample].concat());
}

#[cfg(feature = "snappy")]
#[test]
fn snappy_that_declares_gigabytes_allocates_nothing() {
    let four_gib = [0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0, 0, 0];
    let mut framed = compress::XERIAL_HEADER.to_vec();
    framed.extend(8i32.to_be_bytes());
    framed.extend(four_gib);
    for bytes in [&four_gib[..], &framed] {
        let mut out = Vec::new();
        assert!(decompress(Codec::Snappy, bytes, &mut out, u64::MAX).is_err());
        assert_eq!(out.capacity(), 0);
    }
    for length in [-1, i32::MIN, i32::MAX, 9] {
        framed[16..20].copy_from_slice(&i32::to_be_bytes(length));
        assert!(unpacked(Codec::Snappy, &framed).is_err());
    }
}

#[cfg(feature = "lz4")]
#[test]
fn lz4_is_written_like_java_and_read_in_all_its_forms() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    use std::io::Write as _;

    let sample = sample();
    let ours = packed(Codec::Lz4, &sample);
    assert_eq!(ours[..7], hex("04224d18 60 40 82"));
    let mut forms = vec![ours];
    for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB] {
        for mode in [BlockMode::Independent, BlockMode::Linked] {
            for checked in [false, true] {
                let info = FrameInfo::new()
                    .block_size(size)
                    .block_mode(mode)
                    .content_checksum(checked)
                    .block_checksums(checked)
                    .content_size(checked.then_some(sample.len() as u64));
                let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
                encoder.write_all(&sample).unwrap();
                forms.push(encoder.finish().unwrap());
            }
        }
    }
    for (index, form) in forms.iter().enumerate() {
        assert_eq!(unpacked(Codec::Lz4, form).unwrap(), sample, "form {index}");
    }
    let large_then_small = [forms[9].as_slice(), &forms[0], &forms[3]].concat();
    assert_eq!(unpacked(Codec::Lz4, &large_then_small).unwrap().len(), 3 * sample.len());
}

#[cfg(feature = "zstd")]
#[test]
fn zstd_is_written_like_java_and_read_in_several_frames() {
    let sample = sample();
    let ours = packed(Codec::Zstd, &sample);
    assert_eq!(ours[..6], hex("28b52ffd 00 58"));
    assert_eq!(packed(Codec::Zstd, b"short")[..6], hex("28b52ffd 00 58"));
    let sized = zstd::bulk::compress(&sample, 1).unwrap();
    let mut checked = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    checked.include_checksum(true).unwrap();
    std::io::Write::write_all(&mut checked, &sample).unwrap();
    let mut checked = checked.finish().unwrap();
    let skipped = [&hex("502a4d18 03000000")[..], b"abc"].concat();
    let all = [&ours[..], &sized, &skipped, &checked].concat();
    assert_eq!(unpacked(Codec::Zstd, &all).unwrap(), sample.repeat(3));
    *checked.last_mut().unwrap() ^= 1;
    assert!(unpacked(Codec::Zstd, &checked).is_err());
}
