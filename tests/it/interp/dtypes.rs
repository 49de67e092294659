//! Models in 16 bits: close to single precision, and refused if the device does not support it.

use trafoc::interp::device::{DeviceError, device_in};

use crate::backend::bounds;
use crate::compiled::repository;

/// The outputs of a spec in an element type, with weights of seed 1; `None` if the device refuses the type.
fn computed(spec: &str, inputs: &str, dtype: &str) -> Option<Vec<f64>> {
    let folder = tempfile::tempdir().unwrap();
    let (inputs_file, outputs) = (folder.path().join("in.json"), folder.path().join("out.json"));
    std::fs::write(&inputs_file, inputs).unwrap();
    let output = crate::compiled::program()
        .arg("run")
        .arg(repository(spec))
        .args(["--seed", "1", "--dtype", dtype, "--device", &crate::backend::name()])
        .arg("--inputs")
        .arg(&inputs_file)
        .arg("--outputs")
        .arg(&outputs)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(5) && said.contains("does not compute in") {
        assert!(!bounds().dtypes.contains(&dtype), "{said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    fn flat(value: &serde_json::Value, all: &mut Vec<f64>) {
        match value {
            serde_json::Value::Array(items) => items.iter().for_each(|item| flat(item, all)),
            serde_json::Value::Object(fields) => fields.values().for_each(|item| flat(item, all)),
            serde_json::Value::Number(n) => all.push(n.as_f64().unwrap()),
            _ => (),
        }
    }
    let mut all = Vec::new();
    let text = std::fs::read_to_string(outputs).unwrap();
    flat(&serde_json::from_str(&text).unwrap(), &mut all);
    Some(all)
}

#[test]
fn half_precision_is_close_to_single() {
    let decoder =
        r#"{"tokens": [[1, 2, 3, 4, 5], [5, 4, 3, 2, 1]], "mask": [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]}"#;
    let pair = r#"{"source": [[1, 2, 3, 4]], "target": [[5, 4, 3]]}"#;
    for (spec, inputs) in [
        ("tests/numeric/attention-softcap.yaml", decoder),
        ("tests/numeric/attention-sinks.yaml", decoder),
        ("tests/numeric/attention-latent.yaml", decoder),
        ("tests/numeric/attention-qk-norm-head.yaml", decoder),
        ("tests/numeric/moe-mixtral.yaml", decoder),
        ("tests/numeric/moe-gpt-oss.yaml", decoder),
        ("tests/numeric/position-alibi.yaml", decoder),
        ("tests/numeric/position-rotary-half.yaml", decoder),
        ("tests/numeric/norm-rms-unit-offset.yaml", decoder),
        ("tests/numeric/norm-layer-plain.yaml", decoder),
        ("tests/numeric/t5.yaml", pair),
    ] {
        let single = computed(spec, inputs, "f32").unwrap();
        let scale = single.iter().fold(0.0f64, |m, x| m.max(x.abs()));
        for dtype in ["bf16", "f16"] {
            let Some(half) = computed(spec, inputs, dtype) else { continue };
            assert_eq!(half.len(), single.len());
            let off = half.iter().zip(&single).fold(0.0f64, |m, (a, b)| m.max((a - b).abs()));
            // bf16 keeps 8 bits of a number, f16 keeps 11; several rounding errors add up.
            let bound = if dtype == "bf16" { 0.06 } else { 0.01 };
            // Without any difference, it would have been computed in single precision.
            assert!(off <= bound * scale && off > 0.0, "{spec} {dtype}: off by {off} at a scale of {scale}");
        }
    }
}

#[test]
fn a_device_in_use_stays_in_its_type() {
    let flex = device_in("flex", burn::tensor::FloatDType::F32).unwrap();
    assert_eq!(flex.dtype, burn::tensor::FloatDType::F32);
    let again = device_in("flex", burn::tensor::FloatDType::BF16).unwrap_err();
    assert!(matches!(again, DeviceError::Dtype { .. }));
    insta::assert_snapshot!(again, @"`flex` does not compute in bf16: it is already in use, in f32");
}
