import java.nio.file.Path;

/**
 * Lucene beside paperwasp in its benchmarks: fills an index from standard input, answers from it, serves HTTP, or ranks a
 * test collection.
 */
final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("evaluate")) {
            Evaluating.run(arguments[1], Integer.parseInt(arguments[2]), System.in, System.out);
            return;
        }
        Path directory = Path.of(arguments[1]);
        switch (arguments[0]) {
            case "index-tokens" -> Indexing.tokens(directory, System.in);
            case "index-passages" -> Indexing.passages(directory, System.in);
            case "answer" -> new Answering(directory).run(System.in, System.out);
            case "serve" -> new Serving(directory).run();
            default -> throw new IllegalArgumentException("no command " + arguments[0]);
        }
    }
}
