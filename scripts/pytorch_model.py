"""REM's tokenizer and world model in PyTorch, written from the paper, to compare training with `rem`.

Where the paper's text and the preset `atari100k` differ, this model follows the preset (see DEVIATIONS.md). Operations are
plain PyTorch. Retention is computed in its parallel form, while `rem` computes it chunk by chunk.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

NORM_EPSILON = 1e-6
GROUPS = 8


def norm(channels):
    return nn.GroupNorm(GROUPS, channels, NORM_EPSILON)


def conv3(inputs, outputs):
    return nn.Conv2d(inputs, outputs, 3, padding=1)


class EncoderBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = norm(channels)
        self.down = nn.Conv2d(channels, 2 * channels, 3, stride=2)
        self.conv = conv3(2 * channels, 2 * channels)

    def forward(self, x):
        # Pads right and bottom only.
        return self.conv(self.down(F.pad(F.silu(self.norm(x)), (0, 1, 0, 1))))


class DecoderBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = norm(channels)
        self.up = conv3(channels, channels // 2)
        self.conv = conv3(channels // 2, channels // 2)

    def forward(self, x):
        return self.conv(self.up(F.interpolate(F.silu(self.norm(x)), scale_factor=2, mode="nearest")))


class Encoder(nn.Module):
    def __init__(self, channels, levels, embedding):
        super().__init__()
        self.in_conv = conv3(3, channels)
        self.blocks = nn.ModuleList(EncoderBlock(channels << level) for level in range(levels))
        self.out_norm = norm(channels << levels)
        self.out_conv = conv3(channels << levels, embedding)

    def forward(self, x):
        x = self.in_conv(x)
        for block in self.blocks:
            x = block(x)
        return self.out_conv(F.silu(self.out_norm(x)))


class Decoder(nn.Module):
    def __init__(self, channels, levels, embedding):
        super().__init__()
        self.in_conv = conv3(embedding, channels << levels)
        self.blocks = nn.ModuleList(DecoderBlock(channels << level) for level in range(levels, 0, -1))
        self.out_norm = norm(channels)
        self.out_conv = conv3(channels, 3)

    def forward(self, x):
        x = self.in_conv(x)
        for block in self.blocks:
            x = block(x)
        return self.out_conv(F.silu(self.out_norm(x)))


class Tokenizer(nn.Module):
    def __init__(self, vocabulary, embedding, channels, downsamplings):
        super().__init__()
        self.encoder = Encoder(channels, downsamplings, embedding)
        self.pre_quant_conv = nn.Conv2d(embedding, embedding, 1)
        self.codebook = nn.Parameter(torch.zeros(vocabulary, embedding))
        self.post_quant_conv = nn.Conv2d(embedding, embedding, 1)
        self.decoder = Decoder(channels, downsamplings, embedding)
        self.full_distance = False

    def latents(self, frames):
        """[n, 3, size, size] in [-1, 1] -> [n, embedding, grid, grid]"""
        return self.pre_quant_conv(self.encoder(frames))

    def nearest(self, z):
        """[n, embedding, grid, grid] -> [n, K]"""
        rows = z.permute(0, 2, 3, 1).flatten(0, 2)
        # |z - e|² without |z|², which is the same for every code. With it, f32 rounds differences between codes away.
        products, norms = 2 * rows @ self.codebook.T, self.codebook.square().sum(1)
        distance = rows.square().sum(1, True) - products + norms if self.full_distance else norms - products
        return distance.argmin(1).view(len(z), -1)

    def encode(self, frames):
        return self.nearest(self.latents(frames))

    def losses(self, frames):
        """Reconstruction, and codebook plus commitment loss, Equation (8) without the perceptual term."""
        z = self.latents(frames)
        q = F.embedding(self.nearest(z.detach()), self.codebook)  # [n, K, embedding]
        q = q.transpose(1, 2).view_as(z)
        commitment = F.mse_loss(q, z.detach()) + F.mse_loss(z, q.detach())
        output = self.decoder(self.post_quant_conv(z + (q - z).detach()))
        return {"loss_reconstruction": F.mse_loss(output, frames), "loss_commitment": commitment}


class RetentionLayer(nn.Module):
    """Equations (9) and (10) for a trajectory and POP's prediction tokens."""

    def __init__(self, width, heads, feed_forward, dropout):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width, NORM_EPSILON), nn.LayerNorm(width, NORM_EPSILON)
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(width, width) for _ in range(3))
        self.g_proj, self.out_proj = nn.Linear(width, width), nn.Linear(width, width)
        self.linear1, self.linear2 = nn.Linear(width, feed_forward), nn.Linear(feed_forward, width)
        self.heads, self.dropout = heads, dropout

    def drop(self, x):
        return F.dropout(x, self.dropout, self.training)

    def project(self, y, rotation):
        """[..., n, width] -> queries, keys and values, [..., heads, n, head_dim]"""
        split = lambda x: x.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
        q, k, v = split(self.q_proj(y)), split(self.k_proj(y)), split(self.v_proj(y))
        return rotate(q, rotation), rotate(k, rotation) / math.sqrt(k.shape[-1]), v

    def finish(self, x, y, retained):
        out = self.drop(retained.transpose(-3, -2))  # [..., n, heads, head_dim]
        out = F.layer_norm(out, out.shape[-1:], eps=NORM_EPSILON).flatten(-2)
        x = x + self.drop(self.out_proj(out * F.silu(self.g_proj(y))))
        hidden = self.drop(F.silu(self.linear1(self.norm2(x))))
        return x + self.drop(self.linear2(hidden))

    def forward(self, x, u, tables):
        """x: [batch, blocks * block, width]; u: [batch, predicted blocks, K, width]"""
        y, yu = self.norm1(x), self.norm1(u)
        q, k, v = self.project(y, tables.rotation)
        retained = (q @ k.transpose(-1, -2) * tables.mask) @ v
        before = self.states(k, v, tables)  # [batch, predicted blocks, heads, head_dim, head_dim]
        q, k, v = self.project(yu, tables.predicted_rotation)
        length = u.shape[-2]
        own = (q @ k.transpose(-1, -2) * tables.mask[:, :length, :length]) @ v
        predicted = own + q @ before * tables.powers[:, 1 : length + 1, None]
        return self.finish(x, y, retained), self.finish(u, yu, predicted)

    def states(self, k, v, tables):
        """The state before each predicted block."""
        block = tables.block
        keys, values = k.unflatten(2, (-1, block)), v.unflatten(2, (-1, block))
        falling = tables.powers[:, :block].flip(1)[:, None, :, None]
        own = (keys * falling).transpose(-1, -2) @ values  # [batch, heads, blocks, head_dim, head_dim]
        state, states = torch.zeros_like(own[:, :, 0]), []
        for i in range(own.shape[2]):
            states.append(state)
            state = own[:, :, i] + tables.powers[:, block, None, None] * state
        return torch.stack(states[tables.first :], 1)


def rotate(x, rotation):
    cos, sin = rotation
    swapped = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * cos + swapped * sin


class Tables:
    """Decay masks and rotations of a forward pass."""

    def __init__(self, heads, head_dim, blocks, block, first, dtype):
        self.block, self.first = block, first
        tokens = blocks * block
        rates = 1 - torch.exp(torch.linspace(math.log(1 / 32), math.log(1 / 512), heads, dtype=torch.float64))
        powers = rates[:, None] ** torch.arange(tokens + 1)
        distance = torch.arange(tokens)[:, None] - torch.arange(tokens)
        mask = powers[:, distance.clamp(min=0)] * (distance >= 0)
        self.powers, self.mask = powers.to(dtype), mask.to(dtype)
        positions = torch.arange(tokens)
        self.rotation = rotation(positions, head_dim, dtype)
        starts = torch.arange(first, blocks) * block
        predicted = starts[:, None] + torch.arange(block - 1)
        # [predicted blocks, 1, K, head_dim]: the same for all heads
        self.predicted_rotation = [t[:, None] for t in rotation(predicted, head_dim, dtype)]


def thetas(head_dim):
    """Angle per position of each channel, in f32."""
    return (1 / 10000 ** torch.linspace(0, 1, head_dim // 2)).repeat_interleave(2)


def rotation(positions, head_dim, dtype):
    angles = positions[..., None].float() * thetas(head_dim)
    return [angles.cos().to(dtype), angles.sin().to(dtype)]


class WorldModel(nn.Module):
    """A RetNet with POP over blocks of K observation tokens and an action."""

    def __init__(self, vocabulary, embedding, actions, tokens_per_obs, layers, heads, feed_forward, context, dropout):
        super().__init__()
        self.action_embeddings = nn.Parameter(torch.zeros(actions, embedding))
        self.prediction_tokens = nn.Parameter(torch.zeros(tokens_per_obs, embedding))
        self.layers = nn.ModuleList(RetentionLayer(embedding, heads, feed_forward, dropout) for _ in range(layers))
        head = lambda outputs: nn.Sequential(nn.Linear(embedding, embedding), nn.ReLU(), nn.Linear(embedding, outputs))
        self.head_observations, self.head_rewards, self.head_ends = head(vocabulary), head(3), head(2)
        self.heads, self.context, self.tables = heads, context, {}

    def forward(self, codes, tokens, actions, first):
        """Logits of observations from step `first` on, and of the rewards and ends of all steps.

        codes: [vocabulary, width], tokens: [batch, steps, K], actions: [batch, steps]
        """
        batch, steps, k = tokens.shape
        observations = F.embedding(tokens, codes)
        acted = F.embedding(actions, self.action_embeddings)[:, :, None]
        x = torch.cat((observations, acted), 2).flatten(1, 2)
        u = self.prediction_tokens.expand(batch, steps - first, -1, -1)
        key = (steps, k, first, x.dtype)
        if key not in self.tables:
            self.tables[key] = Tables(self.heads, x.shape[-1] // self.heads, steps, k + 1, first, x.dtype)
        for layer in self.layers:
            x, u = layer(x, u, self.tables[key])
        outcomes = x.view(batch, steps, k + 1, -1)[:, :, -1]
        return self.head_observations(u), self.head_rewards(outcomes), self.head_ends(outcomes)

    def losses(self, codes, tokens, actions, rewards, ends, mask):
        """Algorithm 6. Padded steps and those of the context have no loss."""
        first = self.context
        observations, reward, end = self(codes, tokens, actions, first)
        entropy = lambda logits, classes: F.cross_entropy(logits.flatten(0, -2), classes.flatten(), reduction="none")
        mask = mask[:, first:].flatten()
        mean = lambda loss: (loss * mask).sum() / mask.sum().clamp(min=1)
        classes = rewards[:, first:].sign().long() + 1
        return {
            "loss_obs": mean(entropy(observations, tokens[:, first:]).view(len(mask), -1).mean(1)),
            "loss_rewards": mean(entropy(reward[:, first:], classes)),
            "loss_ends": mean(entropy(end[:, first:], ends[:, first:])),
        }


def optimizer(model, learning_rate, weight_decay, matrices_only):
    """AdamW; for the world model, weight decay on the matrices of linear layers only."""
    decayed, rest = [], []
    for name, parameter in model.named_parameters():
        is_matrix = parameter.ndim == 2 and name.endswith(".weight")
        (decayed if is_matrix or not matrices_only else rest).append(parameter)
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.999), eps=1e-8)


def step(model, adamw, losses, max_grad_norm):
    """One update. Returns the losses and the gradient norm before clipping."""
    total = sum(losses.values())
    adamw.zero_grad()
    total.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_grad_norm)
    adamw.step()
    return {"loss": total.item(), **{name: x.item() for name, x in losses.items()}, "grad_norm": norm.item()}
