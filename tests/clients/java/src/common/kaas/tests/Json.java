package kaas.tests;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON to and from maps, lists, strings, longs, doubles, booleans and null: just what the command lines need. */
final class Json {
  private final String text;
  private int at = 0;

  private Json(String text) {
    this.text = text;
  }

  static Object parse(String text) {
    return new Json(text).value();
  }

  private Object value() {
    char c = next();
    switch (c) {
      case '{':
        return object();
      case '[':
        return array();
      case '"':
        return string();
      case 't':
        at += 3;
        return true;
      case 'f':
        at += 4;
        return false;
      case 'n':
        at += 3;
        return null;
      default:
        return number();
    }
  }

  /** The next character that is no white space; moves past it. */
  private char next() {
    while (Character.isWhitespace(text.charAt(at))) at++;
    return text.charAt(at++);
  }

  private Map<String, Object> object() {
    Map<String, Object> map = new LinkedHashMap<>();
    char c = next();
    while (c != '}') {
      if (c == ',') c = next();
      String key = string();
      next();
      map.put(key, value());
      c = next();
    }
    return map;
  }

  private List<Object> array() {
    List<Object> list = new ArrayList<>();
    while (next() != ']') {
      if (text.charAt(at - 1) != ',') at--;
      list.add(value());
    }
    return list;
  }

  private String string() {
    StringBuilder out = new StringBuilder();
    for (;;) {
      char c = text.charAt(at++);
      if (c == '"') return out.toString();
      if (c != '\\') {
        out.append(c);
        continue;
      }
      char escaped = text.charAt(at++);
      switch (escaped) {
        case 'n':
          out.append('\n');
          break;
        case 't':
          out.append('\t');
          break;
        case 'r':
          out.append('\r');
          break;
        case 'b':
          out.append('\b');
          break;
        case 'f':
          out.append('\f');
          break;
        case 'u':
          out.append((char) Integer.parseInt(text.substring(at, at + 4), 16));
          at += 4;
          break;
        default:
          out.append(escaped);
      }
    }
  }

  private Object number() {
    int start = --at;
    while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at++;
    String digits = text.substring(start, at);
    if (digits.matches("-?\\d+")) return Long.parseLong(digits);
    return Double.parseDouble(digits);
  }

  static String write(Object value) {
    StringBuilder out = new StringBuilder();
    write(value, out);
    return out.toString();
  }

  private static void write(Object value, StringBuilder out) {
    if (value instanceof Map) {
      char separator = '{';
      for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
        out.append(separator);
        write(entry.getKey().toString(), out);
        out.append(':');
        write(entry.getValue(), out);
        separator = ',';
      }
      out.append(separator == '{' ? "{}" : "}");
    } else if (value instanceof Iterable) {
      char separator = '[';
      for (Object item : (Iterable<?>) value) {
        out.append(separator);
        write(item, out);
        separator = ',';
      }
      out.append(separator == '[' ? "[]" : "]");
    } else if (value instanceof String) {
      out.append('"');
      for (char c : ((String) value).toCharArray()) {
        if (c == '"' || c == '\\') out.append('\\').append(c);
        else if (c < 0x20) out.append(String.format("\\u%04x", (int) c));
        else out.append(c);
      }
      out.append('"');
    } else {
      out.append(value);
    }
  }
}
