//! Pictures as PNG: they have the right size, contain their text, and have the same bytes every time;
//! without the feature, the program says how to build it.

fn draw(arguments: &[&str], out: &str) -> std::process::Output {
    let mut command = crate::compiled::program();
    command.args(arguments).args(["--out", out]).output().unwrap()
}

#[test]
fn a_picture_is_a_png_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for arguments in [["draw", "@gbt-mulm"].as_slice(), &["inspect", "positions", "@transformer"]] {
        let said = draw(arguments, &at("a.png"));
        let err = String::from_utf8(said.stderr).unwrap();
        if cfg!(feature = "png") {
            assert!(said.status.success(), "{err}");
            draw(arguments, &at("b.png"));
            let (a, b) = (std::fs::read(at("a.png")).unwrap(), std::fs::read(at("b.png")).unwrap());
            assert!(a == b && a.starts_with(b"\x89PNG\r\n\x1a\n") && a.len() > 10_000);
        } else {
            assert_eq!(said.status.code(), Some(5), "{err}");
            assert!(err.contains("--features png"), "{err}");
        }
    }
    let said = draw(&["draw", "@gbt-mulm", "--format", "png"], &at("c.bin"));
    assert_eq!(said.status.success(), cfg!(feature = "png"));
}
