import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

/** Feeds the service that VESPA_URL names, and searches in it. */
class MusicTest {
  private static final String SERVICE = System.getenv("VESPA_URL");
  private final HttpClient client = HttpClient.newHttpClient();

  private HttpResponse<String> send(HttpRequest.Builder request) throws Exception {
    return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
  }

  @Test
  void aSongThatWasFedIsFound() throws Exception {
    var song = "{\"fields\": {\"title\": \"Blue Train\", \"artist\": \"John Coltrane\", \"year\": 1957}}";
    var put = HttpRequest.newBuilder(URI.create(SERVICE + "/document/v1/music/music/docid/1"))
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString(song));
    assertEquals(200, send(put).statusCode());

    var yql = URLEncoder.encode("select * from music where userQuery()", StandardCharsets.UTF_8);
    var answer = send(HttpRequest.newBuilder(URI.create(SERVICE + "/search/?timeout=10s&query=coltrane&yql=" + yql)));
    assertEquals(200, answer.statusCode());
    assertTrue(answer.body().contains("Blue Train"), answer.body());
  }
}
