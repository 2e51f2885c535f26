package kaas.tests;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.ConfigResource;

/** Administration of topics, where the client has it. */
final class Topics {
  private Topics() {}

  static Properties properties(String bootstrap) {
    Properties properties = new Properties();
    properties.put("bootstrap.servers", bootstrap);
    return properties;
  }

  /** Takes the interface of 4.x or the class of 2.x; the calls in it are the same. */
  static Object run(Object client, String op, Request request) throws Exception {
    AdminClient admin = (AdminClient) client;
    String topic = request.text("topic", "");
    switch (op) {
      case "createTopic":
        Map<String, String> configs = new HashMap<>();
        if (request.has("configs")) {
          request.nested("configs").fields.forEach((key, value) -> configs.put(key, (String) value));
        }
        NewTopic wanted = new NewTopic(topic, (int) request.number("partitions", 1), (short) 1).configs(configs);
        CreateTopicsResult created = admin.createTopics(Collections.singleton(wanted));
        created.all().get();
        return Main.map();
      case "deleteTopic":
        admin.deleteTopics(Collections.singleton(topic)).all().get();
        return Main.map();
      case "listTopics":
        return Main.map("topics", new ArrayList<>(new TreeSet<>(admin.listTopics().names().get())));
      case "topicConfig":
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        return Main.map("value", admin.describeConfigs(Collections.singleton(resource)).all().get().get(resource)
            .get(request.text("name", "")).value());
      default:
        throw new UnsupportedOperationException("no command is named " + op);
    }
  }
}
