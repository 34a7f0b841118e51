// columns.js: reads the tables that columns.cpp has written.

/** The bytes of a base64 text. */
function bytesOf(text) {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unpacked(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** {name: Float64Array} of all columns that `index` lists. Beyond 32 bits numbers are put together by multiplication. */
function readColumns(bytes, index) {
  const columns = {};
  let at = 0;
  for (const {name, count, delta} of index) {
    const values = new Float64Array(count);
    let last = 0;
    for (let i = 0; i < count; ++i) {
      let byte = bytes[at++];
      let value = byte & 127;
      if (byte > 127) {
        let scale = 128;
        do {
          byte = bytes[at++];
          value += (byte & 127) * scale;
          scale *= 128;
        } while (byte > 127);
      }
      value = value % 2 === 0 ? value / 2 : -(value + 1) / 2;
      if (delta) value = last += value;
      values[i] = value;
    }
    columns[name] = values;
  }
  return columns;
}
