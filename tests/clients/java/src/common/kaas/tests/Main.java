package kaas.tests;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.protocol.Errors;

/**
 * Drives Kafka's Java client: reads one JSON command a line, runs each in a thread of its own and prints its events and
 * its end. The commands are described in tests/support/client_process.ts. The bootstrap address is the only argument.
 */
public final class Main {
  /** How to stop the commands that run until they are told to. */
  static final Map<Long, Runnable> stops = new ConcurrentHashMap<>();

  /** Where a command tells what happens while it runs. */
  interface Events {
    void emit(String name, Object... keysAndValues);
  }

  public static void main(String[] arguments) throws Exception {
    String bootstrap = arguments[0];
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      Request request = new Request(Json.parse(line));
      Thread thread = new Thread(() -> serve(bootstrap, request));
      thread.setDaemon(true);
      thread.start();
    }
  }

  private static void serve(String bootstrap, Request request) {
    long id = request.number("id", 0);
    Events events = (name, keysAndValues) -> {
      Map<String, Object> line = map(keysAndValues);
      line.put("id", id);
      line.put("event", name);
      print(line);
    };
    try {
      print(map("id", id, "result", run(bootstrap, request, id, events)));
    } catch (Throwable thrown) {
      Throwable error = thrown;
      while ((error instanceof java.util.concurrent.ExecutionException || error.getClass() == RuntimeException.class)
          && error.getCause() != null) {
        error = error.getCause();
      }
      if (System.getenv("KAAS_TEST_TRACE") != null) thrown.printStackTrace();
      print(map("id", id, "error", map(
          "code", codeOf(error),
          "name", error.getClass().getSimpleName(),
          "message", String.valueOf(error.getMessage()))));
    }
  }

  /** The broker's code; the consumer has an exception of its own for one of them. */
  private static long codeOf(Throwable error) {
    if (error instanceof OffsetOutOfRangeException) return Errors.OFFSET_OUT_OF_RANGE.code();
    return Errors.forException(error).code();
  }

  private static Object run(String bootstrap, Request request, long id, Events events) throws Exception {
    String op = request.text("op", "");
    switch (op) {
      case "produce":
        return Produce.run(bootstrap, request, events);
      case "consume":
        return Consume.run(bootstrap, request, events);
      case "consumeTopic":
        return Consume.runTopic(bootstrap, request, events);
      case "offset":
        return Consume.offset(bootstrap, request);
      case "member":
        Member member = new Member(bootstrap, request, events);
        stops.put(id, member::stop);
        return member.run();
      case "stop":
        stops.get(request.number("target", 0)).run();
        return map();
      case "committed":
        return Member.committed(bootstrap, request);
      default:
        return Compat.other(op, bootstrap, request, id, events);
    }
  }

  private static synchronized void print(Map<String, Object> line) {
    byte[] bytes = (Json.write(line) + "\n").getBytes(StandardCharsets.UTF_8);
    System.out.write(bytes, 0, bytes.length);
    System.out.flush();
  }

  static Map<String, Object> map(Object... keysAndValues) {
    Map<String, Object> map = new LinkedHashMap<>();
    for (int i = 0; i < keysAndValues.length; i += 2) map.put((String) keysAndValues[i], keysAndValues[i + 1]);
    return map;
  }
}
