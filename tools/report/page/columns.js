// columns.js: reads the tables that columns.cpp has written.

/** The bytes of a base64 text. */
function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);  // of newer browsers
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The values of a column that begins at a place of `bytes`. */
function readColumn(bytes, {count, delta, at}) {
  const values = new Float64Array(count);
  let last = 0;
  for (let i = 0; i < count; ++i) {
    let byte = bytes[at++];
    let value = byte & 127;
    if (byte > 127) {
      byte = bytes[at++];
      value |= (byte & 127) << 7;
      if (byte > 127) {
        byte = bytes[at++];
        value |= (byte & 127) << 14;
        if (byte > 127) {
          byte = bytes[at++];
          value |= (byte & 127) << 21;
          // Beyond 28 bits by multiplication, since the operators for bits know 32.
          for (let scale = 268435456; byte > 127; scale *= 128) {
            byte = bytes[at++];
            value += (byte & 127) * scale;
          }
        }
      }
    }
    if (value < 268435456)
      value = (value >>> 1) ^ -(value & 1);
    else
      value = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    if (delta) value = last += value;
    values[i] = value;
  }
  return values;
}

/** An object with a property for each column that `index` lists, which is read when it is asked for first. */
function columnsOf(bytes, index) {
  const columns = {};
  for (const entry of index) {
    Object.defineProperty(columns, entry.name, {
      configurable: true,
      get() {
        const value = readColumn(bytes, entry);
        Object.defineProperty(columns, entry.name, {value});
        return value;
      }
    });
  }
  return columns;
}
