//! Tolerances for each precision.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor};
use rem::model::weights::{Array, Arrays};
use rem_kernels::Precision;

/// Maximum differences from the recorded numbers; relative unless noted.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance {
    precision: Precision,
    measured: Measured,
    pub values: f32,
    /// For losses, including those of ten training steps.
    pub losses: f32,
    pub gradients: f32,
    /// For gradients through vector quantization, a ReLU or the norm of retention outputs.
    pub rough_gradients: f32,
    /// For the global gradient norm.
    pub grad_norm: f32,
    /// Absolute tolerance per element, added to the relative one.
    near_zero: f32,
    /// Fraction of tokens that must be equal.
    same_tokens: f32,
}

#[derive(Clone, Copy, Debug)]
enum Measured {
    /// Compares each element, relative to its own size.
    ByElement,
    /// Compares the norm of the difference with the norm of the tensor.
    AsAWhole,
}

const F32: Tolerance = Tolerance {
    precision: Precision::F32,
    measured: Measured::ByElement,
    values: 1e-4,
    losses: 1e-4,
    gradients: 1e-3,
    rough_gradients: 1e-3,
    grad_norm: 1e-4,
    near_zero: 1e-5,
    same_tokens: 1.0,
};

/// Rounding to bfloat16 has a relative error of up to 2^-9, which accumulates through a network to one or two percent of
/// a tensor's norm. Elements that are small differences of large terms can have any relative error, hence the comparison
/// of whole tensors. A different nearest code, a different sign before a ReLU, or normalization of small retention
/// outputs amplifies errors: gradients that depend on one row per step are then off by about ten percent.
///
/// The limits are about twice what was measured, or less. `README.md` has the measurements, and those of PyTorch's autocast
/// to bfloat16, which is off by about as much.
const MIXED: Tolerance = Tolerance {
    precision: Precision::Mixed,
    measured: Measured::AsAWhole,
    values: 3e-2,
    losses: 6e-3,
    gradients: 1.5e-2,
    rough_gradients: 2e-1,
    grad_norm: 4e-2,
    near_zero: 1e-5,
    same_tokens: 0.95,
};

impl Tolerance {
    pub fn of(precision: Precision) -> Self {
        match precision {
            Precision::F32 => F32,
            Precision::Mixed => MIXED,
        }
    }

    /// The same tolerances for sums of terms of this size.
    pub fn near_zero_of(self, size: f32) -> Self {
        Self {
            near_zero: self.near_zero * size,
            ..self
        }
    }

    /// Panics unless our numbers are within `relative` of theirs.
    pub fn check(&self, name: &str, ours: &[f32], theirs: &[f32], relative: f32) {
        let what = format!("{:?}: {name}", self.precision);
        match self.measured {
            Measured::ByElement => by_element(&what, ours, theirs, relative, self.near_zero),
            Measured::AsAWhole => as_a_whole(&what, ours, theirs, relative, self.near_zero),
        }
    }

    /// Panics unless enough tokens are equal.
    pub fn check_tokens(&self, name: &str, ours: &[f32], theirs: &[f32]) {
        let (precision, count) = (self.precision, theirs.len());
        assert_eq!(ours.len(), count, "{precision:?}: {name}: length");
        let same = ours.iter().zip(theirs).filter(|(a, b)| a == b).count();
        let what = format!("{precision:?}: {name}: {same} of {count} are equal");
        report(&what);
        assert!(same as f32 >= self.same_tokens * count as f32, "{what}");
    }

    /// Panics unless all gradients of a module are within `relative` of `expected`, which uses our parameter names.
    pub fn check_gradients<M: Module>(
        &self,
        module: &M,
        grads: &Gradients,
        expected: Arrays,
        relative: f32,
    ) {
        let (precision, found) = (self.precision, gradients(module, grads));
        for (name, theirs) in &expected {
            let what = format!("gradient of {name}");
            let ours = found
                .get(name)
                .unwrap_or_else(|| panic!("{precision:?}: no {what}"));
            assert_eq!(ours.shape, theirs.shape, "{precision:?}: {what}");
            self.check(&what, &ours.data, &theirs.data, relative);
        }
        assert_eq!(found.len(), expected.len(), "{precision:?}: gradients");
    }
}

/// Panics unless every element is within `near_zero` plus `relative` times its size.
fn by_element(what: &str, ours: &[f32], theirs: &[f32], relative: f32, near_zero: f32) {
    assert_eq!(ours.len(), theirs.len(), "{what}: length");
    let tolerances = |(a, b): (&f32, &f32)| (a - b).abs() / (near_zero + relative * b.abs());
    let differences = || ours.iter().zip(theirs).map(tolerances);
    let (excess, i) =
        differences().zip(0..).fold(
            (0.0, 0),
            |x, y| if y.0 > x.0 || y.0.is_nan() { y } else { x },
        );
    let beyond = differences().filter(|x| *x > 1.0).count();
    report(&format!(
        "{what}: worst {excess} tolerances, {beyond} of {} beyond",
        ours.len()
    ));
    assert!(
        excess <= 1.0,
        "{what}[{i}]: {} but expected {} ({excess} tolerances)",
        ours[i],
        theirs[i]
    );
}

/// Panics unless the norm of the difference is within `relative` of the tensor's norm, plus `near_zero` per element.
pub fn as_a_whole(what: &str, ours: &[f32], theirs: &[f32], relative: f32, near_zero: f32) {
    assert_eq!(ours.len(), theirs.len(), "{what}: length");
    let norm =
        |x: &mut dyn Iterator<Item = f32>| x.map(|x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let difference = norm(&mut ours.iter().zip(theirs).map(|(a, b)| a - b));
    let size = norm(&mut theirs.iter().copied());
    let allowed = f64::from(relative) * size + f64::from(near_zero) * (ours.len() as f64).sqrt();
    let what = format!("{what}: off by {difference:.3e} of {size:.3e}, allowed {allowed:.3e}");
    report(&what);
    assert!(difference <= allowed, "{what}");
}

fn report(line: &str) {
    if std::env::var_os("REM_GOLDEN_VERBOSE").is_some() {
        eprintln!("{line}");
    }
}

/// The gradients of a module's parameters, by parameter name.
fn gradients<M: Module>(module: &M, grads: &Gradients) -> Arrays {
    struct Collect<'a> {
        grads: &'a Gradients,
        path: Vec<String>,
        found: Arrays,
    }
    impl ModuleVisitor for Collect<'_> {
        fn enter_module(&mut self, name: &str, _: &str) {
            self.path.push(name.into());
        }
        fn exit_module(&mut self, _: &str, _: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(grad) = param.val().grad(self.grads) {
                self.found
                    .insert(self.path.join("."), Array::from_tensor(grad));
            }
        }
    }
    let mut collect = Collect {
        grads,
        path: vec![],
        found: Arrays::new(),
    };
    module.visit(&mut collect);
    collect.found
}
