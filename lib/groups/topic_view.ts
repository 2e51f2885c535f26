/** The topics of the cluster, as groups see them. */

export interface TopicFacts {
  readonly name: string;
  readonly topicId: string;
  readonly partitionCount: number;
}

export interface TopicView {
  byName(name: string): TopicFacts | undefined;
  byId(topicId: string): TopicFacts | undefined;
  /** Names that patterns are held against: those of all topics that are not internal. */
  names(): Iterable<string>;
  /** Changes whenever a topic comes, goes or grows. */
  readonly version: number;
}
