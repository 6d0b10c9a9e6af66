// Takes a JVM's file lock, as a broker does on a data directory, and holds it until standard input closes.
//
//   HoldLock.java PATH [POSITION SIZE [shared]]     (default: the whole file, exclusive)
//
// Prints one line: "locked" (exit code 0 in the end) or "refused" (exit code 3 at once).

import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

public class HoldLock {
    public static void main(String[] args) throws Exception {
        long position = args.length > 2 ? Long.parseLong(args[1]) : 0;
        long size = args.length > 2 ? Long.parseLong(args[2]) : Long.MAX_VALUE;
        boolean shared = args.length > 3 && args[3].equals("shared");
        try (FileChannel channel = FileChannel.open(Path.of(args[0]), StandardOpenOption.CREATE,
                StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            FileLock lock = channel.tryLock(position, size, shared);
            System.out.println(lock == null ? "refused" : "locked");
            System.out.flush();
            if (lock == null) System.exit(3);
            while (System.in.read() >= 0) { }
            lock.release();
        }
    }
}
