//! Initial weights of IRIS's world model.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Distribution, Tensor};

/// Standard deviation of initial weights and embeddings.
const STD: f64 = 0.02;

/// Draws the weights of linear layers and all embeddings from a normal distribution of standard deviation 0.02 and sets
/// biases to zero, as in GPT-2 and IRIS. Norms do not change.
pub(super) fn gpt_initialized<M: Module>(module: M) -> M {
    struct Initializer {
        path: Vec<String>,
    }
    impl ModuleMapper for Initializer {
        fn enter_module(&mut self, name: &str, _container: &str) {
            self.path.push(name.to_string());
        }
        fn exit_module(&mut self, _name: &str, _container: &str) {
            self.path.pop();
        }
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let is_bias = self.path.last().is_some_and(|name| name == "bias");
            param.map(|old| {
                let new = match (D, is_bias) {
                    (2, _) => {
                        let normal = Distribution::Normal(0.0, STD);
                        Tensor::random(old.shape(), normal, &old.device())
                    }
                    (_, true) => Tensor::zeros(old.shape(), &old.device()),
                    _ => return old,
                };
                new.set_require_grad(old.is_require_grad())
            })
        }
    }
    module.map(&mut Initializer { path: Vec::new() })
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::model::weights;
    use crate::model::world_model::{WorldModel, WorldModelSizes};
    use burn::tensor::Device;
    use rem_kernels::Precision;

    fn world_model(preset: &str) -> weights::Arrays {
        let set = ["env.frame_size=32".to_string()];
        let config = Config::load(preset, &set).unwrap();
        let sizes = WorldModelSizes::of(&config, 6);
        let device = Device::flex().autodiff();
        let model = WorldModel::new(&config.world_model, sizes, Precision::F32, &device);
        weights::collect(&model)
    }

    fn deviation(values: &[f32]) -> f64 {
        let n = values.len() as f64;
        let mean = values.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let squares = values.iter().map(|x| (f64::from(*x) - mean).powi(2));
        (squares.sum::<f64>() / n).sqrt()
    }

    #[test]
    fn a_transformer_starts_as_in_iris() {
        let arrays = world_model("ablation-iris");
        let (mut weights, mut biases, mut norms) = (0, 0, 0);
        for (name, array) in &arrays {
            if array.shape.len() == 2 {
                let expected = 0.02 * (1.0 + 4.0 / (array.data.len() as f64).sqrt());
                let found = deviation(&array.data);
                assert!((found - 0.02).abs() < expected - 0.02, "{name}: {found}");
                weights += 1;
            } else if name.ends_with(".bias") || name.ends_with(".beta") {
                assert!(array.data.iter().all(|x| *x == 0.0), "{name}");
                biases += 1;
            } else {
                assert!(array.data.iter().all(|x| *x == 1.0), "{name}");
                norms += 1;
            }
        }
        // Two layers with six linear layers and two norms each; three heads of two; the last norm; embeddings of
        // positions, actions and observations.
        assert_eq!((weights, biases, norms), (2 * 6 + 6 + 3, 2 * 8 + 6 + 1, 5));
    }

    #[test]
    fn a_retnet_has_embeddings_of_deviation_one() {
        let arrays = world_model("ablation-separate-embeddings");
        let table = &arrays["observation_embeddings"];
        let found = deviation(&table.data);
        assert!((found - 1.0).abs() < 0.1, "{found}");
        assert!(
            arrays["head_ends.hidden.bias"]
                .data
                .iter()
                .any(|x| *x != 0.0)
        );
    }
}
