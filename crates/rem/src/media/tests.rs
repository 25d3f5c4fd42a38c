use std::fs::File;
use std::io::BufReader;

use image::codecs::gif::GifDecoder;
use image::{AnimationDecoder, RgbImage};

use super::*;

/// A frame of distinct pixels: row in red, column in green, seed in blue.
fn frame(size: usize, seed: u8) -> Vec<u8> {
    (0..size * size)
        .flat_map(|i| [(i / size) as u8, (i % size) as u8, seed])
        .collect()
}

fn pixel(canvas: &Canvas, x: usize, y: usize) -> Color {
    canvas.rgb.as_chunks::<3>().0[y * canvas.width + x]
}

fn count(canvas: &Canvas, color: Color) -> usize {
    let pixels = canvas.rgb.as_chunks::<3>().0;
    pixels.iter().filter(|pixel| **pixel == color).count()
}

fn captioned(frames: &[Vec<u8>]) -> Vec<CaptionedFrame<'_>> {
    let captioned = |(i, frame)| CaptionedFrame {
        frame: Some(frame),
        caption: format!("step {i}"),
    };
    let frames = frames.iter().map(|frame| &frame[..]);
    frames.enumerate().map(captioned).collect()
}

fn read_gif(path: &Path) -> Vec<(RgbImage, u32)> {
    let decoder = GifDecoder::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let frames = decoder.into_frames().collect_frames().unwrap();
    let convert = |frame: image::Frame| {
        let (delay, _) = frame.delay().numer_denom_ms();
        let image = image::DynamicImage::from(frame.into_buffer()).to_rgb8();
        (image, delay)
    };
    frames.into_iter().map(convert).collect()
}

#[test]
fn blit_enlarges_pixels_and_clips_at_the_edge() {
    let mut canvas = Canvas::new(7, 5, [9, 9, 9]);
    canvas.blit(&frame(2, 5), 2, 2, 1, 3);
    assert_eq!(pixel(&canvas, 1, 1), [9, 9, 9]);
    assert_eq!(pixel(&canvas, 2, 1), [0, 0, 5]);
    assert_eq!(pixel(&canvas, 4, 3), [0, 0, 5]);
    assert_eq!(pixel(&canvas, 5, 3), [0, 1, 5]);
    assert_eq!(pixel(&canvas, 6, 4), [1, 1, 5]);
    assert_eq!(pixel(&canvas, 2, 0), [9, 9, 9]);
}

#[test]
fn a_png_decodes_to_the_same_pixels() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sheet.png");
    let canvas = reconstruction_sheet(8, &[frame(8, 1)], &[frame(8, 2)]);
    canvas.save_png(&path).unwrap();
    let read = image::open(&path).unwrap().to_rgb8();
    assert_eq!(
        (read.width() as usize, read.height() as usize),
        (canvas.width, canvas.height)
    );
    assert_eq!(read.into_raw(), canvas.rgb);
}

#[test]
fn a_gif_of_at_most_256_colors_is_exact() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("episode.gif");
    let frames: Vec<Vec<u8>> = (0..5).map(|seed| frame(15, seed)).collect(); // 225 colors + background + outline + text
    let canvases: Vec<_> = episode_frames(15, captioned(&frames)).collect();
    save_gif(&path, &canvases, 70).unwrap();
    let read = read_gif(&path);
    assert_eq!(read.len(), 5);
    for ((image, delay), canvas) in read.into_iter().zip(&canvases) {
        assert_eq!(delay, 70);
        assert!(image.into_raw() == canvas.rgb, "colors changed");
    }
    let bytes = std::fs::read(&path).unwrap();
    let forever = b"NETSCAPE2.0\x03\x01\x00\x00\x00";
    assert!(bytes.windows(forever.len()).any(|part| part == forever));
}

#[test]
fn a_gif_of_more_colors_is_close_to_the_original() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("many.gif");
    let gradient: Vec<u8> = (0..64usize * 64)
        .flat_map(|i| [(i / 64 * 2) as u8, (i % 64 * 2) as u8, 80])
        .collect(); // 4096 colors
    let frames = [gradient];
    let mut canvases = episode_frames(64, captioned(&frames));
    let canvas = canvases.next().unwrap();
    save_gif(&path, [&canvas], 100).unwrap();
    let read = read_gif(&path).remove(0).0.into_raw();
    let error: u64 = read
        .iter()
        .zip(&canvas.rgb)
        .map(|(a, b)| u64::from(a.abs_diff(*b)))
        .sum();
    let mean = error as f64 / read.len() as f64;
    assert!(mean > 0.0 && mean < 4.0, "mean error {mean}");
}

#[test]
fn an_empty_animation_is_an_error() {
    let none: [Canvas; 0] = [];
    let error = save_gif(Path::new("never.gif"), none, 100).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn reconstructions_are_below_their_frames() {
    let originals = vec![vec![200, 0, 0]; 9];
    let reconstructions = vec![vec![0, 0, 200]; 9];
    let canvas = reconstruction_sheet(1, &originals, &reconstructions);
    assert_eq!(count(&canvas, [200, 0, 0]), 9 * 96 * 96);
    assert_eq!(count(&canvas, [0, 0, 200]), 9 * 96 * 96);
    let x = canvas.width - MARGIN - 1;
    assert_eq!(pixel(&canvas, x, MARGIN), [200, 0, 0]);
    assert_eq!(pixel(&canvas, x, MARGIN + 96 + GAP), [0, 0, 200]);
}

#[test]
fn reality_is_left_of_and_above_the_dream() {
    let step = FramePair {
        dream: Some(vec![0, 0, 200]),
        reality: Some(vec![200, 0, 0]),
        caption: "step 4  action right  reward +1.0 / +0.9".to_owned(),
    };
    let recording: Vec<_> = dream_next_to_reality(1, std::slice::from_ref(&step)).collect();
    let middle = recording[0].height / 2;
    assert_eq!(pixel(&recording[0], MARGIN, middle), [200, 0, 0]);
    assert_eq!(
        pixel(&recording[0], recording[0].width - MARGIN - 1, middle),
        [0, 0, 200]
    );
    assert!(count(&recording[0], TEXT) > 0, "the caption is missing");

    let strip = dream_strip(1, &[step.clone(), step], 8);
    let x = strip.width - MARGIN - 1;
    assert_eq!(pixel(&strip, x, MARGIN), [200, 0, 0]);
    assert_eq!(pixel(&strip, x, MARGIN + 112 + GAP), [0, 0, 200]);
}

/// The text chunk of a PNG file that describes it.
fn description(png_file: &[u8]) -> serde_json::Value {
    let reader = png::Decoder::new(std::io::Cursor::new(png_file))
        .read_info()
        .unwrap();
    let texts = &reader.info().utf8_text;
    let text = texts
        .iter()
        .find(|text| text.keyword == "rem-sheet")
        .unwrap();
    serde_json::from_str(&text.get_text().unwrap()).unwrap()
}

#[test]
fn a_sheet_describes_where_its_frames_are_and_what_they_show() {
    let (real, imagined) = (frame(4, 1), frame(4, 2));
    let step = |dream: Option<&Vec<u8>>, caption: &str| FramePair {
        dream: dream.cloned(),
        reality: Some(real.clone()),
        caption: caption.to_owned(),
    };
    let steps = [
        step(Some(&imagined), "step 0  context"),
        step(None, "step 1  left  reward +1/+1  real: terminated"),
    ];
    let canvas = dream_strip(4, &steps, 8);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dream.png");
    canvas.save_png(&path).unwrap();
    let described = description(&std::fs::read(path).unwrap());
    assert_eq!(described["rows"], serde_json::json!(["reality", "dream"]));
    let columns = described["columns"].as_array().unwrap();
    let caption = ["step 1", "left", "reward +1/+1", "real: terminated"];
    assert_eq!(columns[1]["caption"], serde_json::json!(caption));
    assert!(columns[1]["frames"][1].is_null());
    // The frames can be cut out of the image.
    let scale = described["scale"].as_u64().unwrap() as usize;
    for (row, frame) in [&real, &imagined].into_iter().enumerate() {
        let corner = &columns[0]["frames"][row];
        let [left, top] = [0, 1].map(|axis| corner[axis].as_u64().unwrap() as usize);
        let cut = (0..16).flat_map(|i| pixel(&canvas, left + i % 4 * scale, top + i / 4 * scale));
        assert_eq!(&cut.collect::<Vec<u8>>(), frame);
    }
}

#[test]
fn dark_frames_are_outlined() {
    let dark = vec![0; 3];
    let canvas = reconstruction_sheet(1, std::slice::from_ref(&dark), std::slice::from_ref(&dark));
    // Two outlines of one pixel around frames of 96 pixels.
    assert_eq!(count(&canvas, OUTLINE), 2 * 4 * 97);
}

#[test]
fn strip_columns_are_evenly_spaced() {
    assert_eq!(evenly_spaced(10, 4).collect::<Vec<_>>(), [0, 3, 6, 9]);
    assert_eq!(evenly_spaced(3, 8).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(evenly_spaced(5, 1).collect::<Vec<_>>(), [0]);
    assert_eq!(evenly_spaced(0, 4).count(), 0);
}
