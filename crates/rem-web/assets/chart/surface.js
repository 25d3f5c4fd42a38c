// Two surfaces with the same methods, so that an exported chart is the chart on the page: a canvas and an SVG document.

import { SVG } from "../lib/dom.js";

const FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif";

/** Draws on a canvas, at `ratio` pixels of the screen per pixel of the page. */
export class CanvasSurface {
  constructor(canvas, width, height, ratio = globalThis.devicePixelRatio || 1) {
    const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
    this.context = canvas.getContext("2d");
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, width, height);
    // Cheaper than round joins, and no different at this width.
    this.context.lineJoin = "bevel";
  }

  rect(x, y, width, height, color, alpha = 1) {
    this.context.globalAlpha = alpha;
    this.context.fillStyle = color;
    this.context.fillRect(x, y, width, height);
  }

  /** A line through the points (x[i], y[i]). */
  line(x, y, { color, width = 1, dashes = [], alpha = 1 }) {
    const { context } = this;
    this.trace(x, y);
    context.globalAlpha = alpha;
    context.strokeStyle = color;
    context.lineWidth = width;
    context.setLineDash(dashes);
    context.stroke();
  }

  /** The area between two lines over the same x. */
  area(x, low, high, color, alpha) {
    const { context } = this;
    this.trace([...x, ...[...x].reverse()], [...high, ...[...low].reverse()]);
    context.globalAlpha = alpha;
    context.fillStyle = color;
    context.fill();
  }

  dot(x, y, radius, color) {
    const { context } = this;
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.globalAlpha = 1;
    context.fillStyle = color;
    context.fill();
  }

  text(x, y, text, { color, anchor = "start", size = 11, bold = false }) {
    const { context } = this;
    context.globalAlpha = 1;
    context.font = `${bold ? "600 " : ""}${size}px ${FONT}`;
    context.textAlign = anchor === "middle" ? "center" : anchor;
    context.fillStyle = color;
    context.fillText(text, x, y);
  }

  /** Draws only inside a rectangle. */
  clip(x, y, width, height, draw) {
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    draw();
    context.restore();
  }

  trace(x, y) {
    const { context } = this;
    context.beginPath();
    context.moveTo(x[0], y[0]);
    for (let i = 1; i < x.length; i++) context.lineTo(x[i], y[i]);
  }
}

/** Writes an SVG document. */
export class SvgSurface {
  constructor(width, height) {
    this.size = { width, height };
    this.parts = [];
  }

  rect(x, y, width, height, color, alpha = 1) {
    this.add("rect", { x, y, width, height, fill: color, "fill-opacity": alpha });
  }

  line(x, y, { color, width = 1, dashes = [], alpha = 1 }) {
    this.add("path", {
      d: path(x, y), fill: "none", stroke: color, "stroke-width": width, "stroke-opacity": alpha,
      "stroke-dasharray": dashes.join(" ") || null, "stroke-linejoin": "round", "stroke-linecap": "round",
    });
  }

  area(x, low, high, color, alpha) {
    const d = path([...x, ...[...x].reverse()], [...high, ...[...low].reverse()]);
    this.add("path", { d: `${d}Z`, fill: color, "fill-opacity": alpha });
  }

  dot(x, y, radius, color) {
    this.add("circle", { cx: x, cy: y, r: radius, fill: color });
  }

  text(x, y, text, { color, anchor = "start", size = 11, bold = false }) {
    this.add("text", { x, y, fill: color, "text-anchor": anchor, "font-size": size, "font-weight": bold ? 600 : null }, escape(text));
  }

  /** A nested document clips what is drawn in it. */
  clip(x, y, width, height, draw) {
    this.parts.push(`<svg ${attributes({ x, y, width, height, viewBox: [x, y, width, height].map(round).join(" ") })}>`);
    draw();
    this.parts.push("</svg>");
  }

  add(tag, values, content = "") {
    this.parts.push(`<${tag} ${attributes(values)}>${content}</${tag}>`);
  }

  toString() {
    const { width, height } = this.size;
    const head = attributes({ xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT });
    return `<svg ${head}>\n${this.parts.join("\n")}\n</svg>\n`;
  }
}

const round = (value) => (typeof value === "number" ? Number(value.toFixed(2)) : value);

function path(x, y) {
  return x.map((value, i) => `${i ? "L" : "M"}${round(value)} ${round(y[i])}`).join("");
}

function attributes(values) {
  const given = Object.entries(values).filter(([, value]) => value !== null);
  return given.map(([name, value]) => `${name}="${escape(round(value))}"`).join(" ");
}

function escape(text) {
  return String(text).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
