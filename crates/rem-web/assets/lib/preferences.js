// Choices that the browser remembers.

/** The stored values with a name, completed by `defaults`. Unreadable ones count as none. */
export function preferences(name, defaults) {
  let stored = {};
  try {
    stored = JSON.parse(localStorage.getItem(name)) ?? {};
  } catch {
    // Written by another version.
  }
  const values = { ...defaults };
  for (const key of Object.keys(defaults)) {
    if (typeof stored[key] === typeof defaults[key] && Array.isArray(stored[key]) === Array.isArray(defaults[key])) values[key] = stored[key];
  }
  return {
    ...values,
    /** Changes some values and stores all. */
    set(change) {
      Object.assign(this, change);
      const all = Object.fromEntries(Object.keys(defaults).map((key) => [key, this[key]]));
      localStorage.setItem(name, JSON.stringify(all));
    },
  };
}
