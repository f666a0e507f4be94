// Feeds the service that VESPA_URL names, and searches in it.
import assert from "node:assert/strict";
import { test } from "node:test";

const service = process.env.VESPA_URL;

test("a song that was fed is found", async () => {
  const put = await fetch(`${service}/document/v1/music/music/docid/1`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ fields: { title: "Blue Train", artist: "John Coltrane", year: 1957 } }),
  });
  assert.equal(put.status, 200);

  const parameters = new URLSearchParams({ yql: "select * from music where userQuery()", query: "coltrane", timeout: "10s" });
  const answer = await fetch(`${service}/search/?${parameters}`);
  assert.equal(answer.status, 200);
  const { root } = await answer.json();
  assert.deepEqual(root.children.map((hit) => hit.fields.title), ["Blue Train"]);
});
