//! AdamW with parameter groups and one global norm over all gradients.

use std::collections::BTreeMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor};

use crate::config::{Optimise, Train};
use crate::weights::{Array, Arrays};

/// Which parameters the weight decay applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecayGroup {
    /// Every parameter (tokenizer, controller).
    All,
    /// The matrices of linear layers: no biases, norms or embeddings (world model).
    WeightMatrices,
}

impl DecayGroup {
    fn decays(self, name: &str, rank: usize) -> bool {
        match self {
            Self::All => true,
            Self::WeightMatrices => rank == 2 && name.ends_with(".weight"),
        }
    }
}

/// A loss or gradient that is not finite; the weights were left as they were.
#[derive(Clone, Debug, PartialEq)]
pub struct NotFinite(pub String);

#[derive(Clone, Debug)]
struct Moments {
    first: Tensor<1>,
    second: Tensor<1>,
}

#[derive(Clone, Debug)]
pub struct AdamW {
    learning_rate: f64,
    weight_decay: f64,
    clip: f64,
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    group: DecayGroup,
    steps: u64,
    moments: BTreeMap<String, Moments>,
}

impl AdamW {
    pub fn new(optimise: &Optimise, train: &Train, group: DecayGroup) -> Self {
        Self {
            learning_rate: optimise.learning_rate,
            weight_decay: optimise.weight_decay,
            clip: optimise.clip,
            beta_1: train.beta_1,
            beta_2: train.beta_2,
            epsilon: train.adam_epsilon,
            group,
            steps: 0,
            moments: BTreeMap::new(),
        }
    }

    /// Steps taken so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// One step down the gradients of `loss`; returns the module and the global norm before clipping.
    pub fn step<M: Module>(&mut self, module: M, loss: &Tensor<1>) -> Result<(M, f64), NotFinite> {
        let value: f32 = loss.clone().inner().into_scalar();
        if !value.is_finite() {
            return Err(NotFinite(format!("the loss is {value}")));
        }
        let grads = GradientsParams::from_grads(loss.backward(), &module);
        let norm = global_norm(&module, &grads)?;
        self.steps += 1;
        let mut update = Update {
            scale: (self.clip / (norm + 1e-6)).min(1.0),
            grads,
            path: Vec::new(),
            optimiser: self,
        };
        Ok((module.map(&mut update), norm))
    }

    /// The moments as arrays, by parameter; the count of steps is kept beside them.
    pub fn to_arrays(&self) -> Arrays {
        let mut arrays = Arrays::new();
        for (name, m) in &self.moments {
            arrays.insert(format!("{name}/first"), Array::from_tensor(m.first.clone()));
            arrays.insert(
                format!("{name}/second"),
                Array::from_tensor(m.second.clone()),
            );
        }
        arrays
    }

    /// Puts a state of [`AdamW::to_arrays`] back.
    pub fn restore(&mut self, arrays: &Arrays, steps: u64, device: &Device) -> Result<(), String> {
        let device = &device.clone().without_autodiff();
        let mut moments = BTreeMap::new();
        for (name, first) in arrays {
            let Some(name) = name.strip_suffix("/first") else {
                continue;
            };
            let second = arrays
                .get(&format!("{name}/second"))
                .ok_or_else(|| format!("the second moment of `{name}` is missing"))?;
            let tensor = |a: &Array| Tensor::from_data(a.to_data(), device);
            let pair = Moments {
                first: tensor(first),
                second: tensor(second),
            };
            moments.insert(name.to_string(), pair);
        }
        self.moments = moments;
        self.steps = steps;
        Ok(())
    }
}

/// The norm over all gradients of a module.
fn global_norm<M: Module>(module: &M, grads: &GradientsParams) -> Result<f64, NotFinite> {
    struct Squares<'a> {
        grads: &'a GradientsParams,
        path: Vec<String>,
        names: Vec<String>,
        sums: Vec<Tensor<1>>,
    }
    impl ModuleVisitor for Squares<'_> {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.path.push(name.to_string());
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.pop();
        }
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            if let Some(grad) = self.grads.get::<D>(param.id) {
                self.sums.push(grad.square().sum());
                self.names.push(self.path.join("."));
            }
        }
    }
    let mut squares = Squares {
        grads,
        path: Vec::new(),
        names: Vec::new(),
        sums: Vec::new(),
    };
    module.visit(&mut squares);
    // One read of all sums: on a GPU each read waits for the device.
    let sums: Vec<f32> = Tensor::cat(squares.sums, 0)
        .try_into_vec_as()
        .expect("the device answers");
    if let Some(i) = sums.iter().position(|s| !s.is_finite()) {
        return Err(NotFinite(format!(
            "the gradient of `{}` is not finite",
            squares.names[i]
        )));
    }
    Ok(sums.iter().map(|s| f64::from(*s)).sum::<f64>().sqrt())
}

struct Update<'a> {
    optimiser: &'a mut AdamW,
    grads: GradientsParams,
    scale: f64,
    path: Vec<String>,
}

impl ModuleMapper for Update<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(grad) = self.grads.remove::<D>(param.id) else {
            return param;
        };
        let o = &mut *self.optimiser;
        let name = self.path.join(".");
        let shape = grad.shape();
        let count = shape.num_elements();
        let grad: Tensor<1> = grad.reshape([count]).mul_scalar(self.scale);
        let moments = match o.moments.remove(&name) {
            Some(m) => Moments {
                first: m.first.mul_scalar(o.beta_1) + grad.clone().mul_scalar(1.0 - o.beta_1),
                second: m.second.mul_scalar(o.beta_2) + grad.square().mul_scalar(1.0 - o.beta_2),
            },
            None => Moments {
                first: grad.clone().mul_scalar(1.0 - o.beta_1),
                second: grad.square().mul_scalar(1.0 - o.beta_2),
            },
        };
        let t = o.steps as i32;
        let first_scale = 1.0 - o.beta_1.powi(t);
        let second_scale = (1.0 - o.beta_2.powi(t)).sqrt();
        let denominator = moments
            .second
            .clone()
            .sqrt()
            .div_scalar(second_scale)
            .add_scalar(o.epsilon);
        let step = (moments.first.clone() / denominator).mul_scalar(o.learning_rate / first_scale);
        let kept = if o.group.decays(&name, D) {
            1.0 - o.learning_rate * o.weight_decay
        } else {
            1.0
        };
        o.moments.insert(name, moments);
        param.map(|old| {
            let tracked = old.is_require_grad();
            let new = old.inner().mul_scalar(kept) - step.reshape(shape);
            new.autodiff().set_require_grad(tracked)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use burn::nn::{Linear, LinearConfig};

    fn setup(decay: f64) -> (Linear, AdamW) {
        let mut config = Config::load("debug", &[]).unwrap();
        config.tokenizer.optimise.weight_decay = decay;
        config.tokenizer.optimise.learning_rate = 0.1;
        let linear = LinearConfig::new(2, 1).init(&Device::flex().autodiff());
        (
            linear,
            AdamW::new(&config.tokenizer.optimise, &config.train, DecayGroup::All),
        )
    }

    fn loss(linear: &Linear, factor: f32) -> Tensor<1> {
        let x = Tensor::<2>::from_floats([[1.0, -2.0]], &Device::flex());
        linear.forward(x).mul_scalar(factor).sum()
    }

    #[test]
    fn the_first_step_has_the_size_of_the_learning_rate() {
        let (linear, mut optimiser) = setup(0.0);
        let before = linear.weight.val().inner();
        let l = loss(&linear, 1.0);
        let (linear, norm) = optimiser.step(linear, &l).unwrap();
        assert!((norm - 6f64.sqrt()).abs() < 1e-6); // weights 1, -2 and bias 1
        let moved: Vec<f32> = (linear.weight.val().inner() - before)
            .try_into_vec_as()
            .unwrap();
        assert!(
            (moved[0] + 0.1).abs() < 1e-5 && (moved[1] - 0.1).abs() < 1e-5,
            "{moved:?}"
        );
    }

    #[test]
    fn a_gradient_that_is_not_finite_leaves_weights_and_moments() {
        let (linear, mut optimiser) = setup(0.01);
        let l = loss(&linear, 1.0);
        let (linear, _) = optimiser.step(linear, &l).unwrap();
        let (weights, moments) = (crate::weights::collect(&linear), optimiser.to_arrays());
        let bad = loss(&linear, f32::INFINITY);
        assert!(optimiser.step(linear.clone(), &bad).is_err());
        assert_eq!(crate::weights::collect(&linear), weights);
        assert_eq!(optimiser.to_arrays(), moments);
    }

    #[test]
    fn a_restored_optimiser_goes_on_the_same() {
        let (mut linear, mut optimiser) = setup(0.01);
        for _ in 0..3 {
            let l = loss(&linear, 1.0);
            linear = optimiser.step(linear, &l).unwrap().0;
        }
        let (_, mut other) = setup(0.01);
        other
            .restore(&optimiser.to_arrays(), optimiser.steps(), &Device::flex())
            .unwrap();
        let (l, twin) = (loss(&linear, 1.0), linear.clone());
        let a = optimiser.step(linear, &l).unwrap().0;
        let l = loss(&twin, 1.0);
        let b = other.step(twin, &l).unwrap().0;
        assert_eq!(crate::weights::collect(&a), crate::weights::collect(&b));
    }

    #[test]
    fn decay_groups() {
        let matrices = DecayGroup::WeightMatrices;
        assert!(matrices.decays("retnet.layers.0.q_proj.weight", 2));
        assert!(!matrices.decays("retnet.layers.0.norm1.gamma", 1));
        assert!(!matrices.decays("retnet.layers.0.q_proj.bias", 1));
        assert!(!matrices.decays("action_embeddings", 2));
    }
}
