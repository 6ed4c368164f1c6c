// SPDX-License-Identifier: BSD-2-Clause
// Waits for a line, works, prints what it found and how often it called which native function.
import java.io.File;
import java.io.FileInputStream;

public final class Program {
	private static int interned, started, collected, lengths;
	private static int sum;

	private static final class Adder extends Thread {
		@Override
		public void run() {
			synchronized (Program.class) {
				sum += 7;
			}
		}
	}

	private static int deep(int n) {
		return deep(n + 1) + 1;
	}

	private static String work(String[] args, int rounds) throws Exception {
		File file = new File(args[0]);
		int nulls = 0, overflows = 0;
		long bytes = 0;
		interned = started = collected = lengths = sum = 0;
		for (int i = 0; i < rounds; i++) {
			new String("text" + i % 50).intern();
			interned++;
			bytes += file.length();
			lengths++;
			try { // a SIGSEGV of the machine's code, once it is compiled
				Object nothing = i >= 0 ? null : file;
				nothing.hashCode();
			} catch (NullPointerException e) {
				nulls++;
			}
			if (i % 40 == 0) {
				try {
					deep(0);
				} catch (StackOverflowError e) {
					overflows++;
				}
				Thread[] threads = new Thread[4];
				for (int t = 0; t < threads.length; t++) {
					threads[t] = new Adder();
					threads[t].start();
					started++;
				}
				for (Thread thread : threads)
					thread.join();
				System.gc();
				collected++;
			}
		}
		return "{\"calls\":{\"JVM_InternString\":" + interned + ",\"JVM_StartThread\":" + started
			+ ",\"JVM_GC\":" + collected + ",\"Java_java_io_UnixFileSystem_getLength\":" + lengths
			+ "},\"bytes\":" + bytes + ",\"nulls\":" + nulls + ",\"overflows\":" + overflows
			+ ",\"sum\":" + sum + "}";
	}

	public static void main(String[] args) throws Exception {
		work(args, 81); // what is loaded at first use is loaded before the recording
		System.err.println("ready");
		System.in.read();
		System.out.println(work(args, 100));
	}
}
