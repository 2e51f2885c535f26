package kaas.tests;

import java.util.List;
import java.util.Map;

/** One command with typed access to its fields. */
final class Request {
  final Map<String, Object> fields;

  @SuppressWarnings("unchecked")
  Request(Object json) {
    fields = (Map<String, Object>) json;
  }

  boolean has(String name) {
    return fields.get(name) != null;
  }

  Object get(String name) {
    return fields.get(name);
  }

  String text(String name, String otherwise) {
    return has(name) ? (String) fields.get(name) : otherwise;
  }

  long number(String name, long otherwise) {
    return has(name) ? ((Number) fields.get(name)).longValue() : otherwise;
  }

  boolean flag(String name) {
    return Boolean.TRUE.equals(fields.get(name));
  }

  @SuppressWarnings("unchecked")
  List<Object> list(String name) {
    return (List<Object>) fields.get(name);
  }

  Request nested(String name) {
    return new Request(fields.get(name));
  }

  /** Settings of the client's own, by its own names. */
  void addConfig(Map<String, Object> properties) {
    if (has("config")) properties.putAll(nested("config").fields);
  }
}
