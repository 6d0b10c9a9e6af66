//! Morning: records are written and read.

use crate::session::Session;

#[test]
fn appending() {
    let mut day = Session::new("append");
    day.chapter("a log is made and grows");
    day.run("logctl append orders-0");
    day.run("seq 1 5 | logctl append orders-0 --create --timestamp 1700000000000");
    day.run("printf 'one\\n' | logctl append orders-0 --timestamp 1700000001000");
    day.run("printf 'k1=eins\\nk2=zwei\\n' | logctl append orders-0 -K = -H source=shop -H 'to=till' --timestamp 1700000002000");
    day.run("printf 'gone=\\n' | logctl append orders-0 -K = -Z --timestamp 1700000003000");
    day.run("printf 'a;b;c' | logctl append orders-0 -D ';' -k fixed --report '%o %k=%v\\n' --timestamp 1700000004000");
    day.run("seq 1 1000 | logctl append orders-0 -z zstd:3 --sync close --segment-bytes 4k --timestamp 1700000005000");
    day.pipe("echo silent | logctl append orders-0 -q");
    day.run("logctl append orders-0 </dev/null");

    day.chapter("JSON goes in as it comes out");
    day.pipe("logctl cat orders-0 -J -o 5:9 | tee lines.jsonl");
    day.run("logctl append other-0 --create --format jsonl --file lines.jsonl");
    day.run("logctl append third-0 --create --format jsonl --file lines.jsonl --preserve");
    day.pipe("logctl offsets . --time earliest; logctl offsets .");

    day.chapter("CSV and templates in, a tee out");
    day.pipe("logctl cat orders-0 -o 5:9 --csv | tee lines.csv");
    day.run("logctl append fourth-0 --create --format csv --file lines.csv");
    day.run("printf 'a 1\\nb 2\\n' | logctl append fifth-0 --create --format '%k %v\\n' --timestamp 1700000000000");
    day.pipe("logctl cat fifth-0 -f '%k=%v\\n'");
    day.pipe("printf 'seen\\n' | logctl append fifth-0 --tee");

    day.chapter("what cannot be done");
    day.run("echo '{\"value\":' | logctl append orders-0 --format jsonl");
    day.run("echo x | logctl append orders-0 --expect 3");
    day.run("echo x | logctl append orders-0 --sync sometimes");
    day.run("echo x | logctl append orders-0 -z brotli");
    day.run("echo x | logctl append orders-0 -H nonsense");
    day.run("logctl append orders-0 --file missing.txt");
    day.run("head -c 3000 /dev/zero | tr '\\0' x | logctl append orders-0 --max-batch-bytes 1k");
    day.run("echo x | logctl append");
    day.run("echo x | logctl append . --create");
    day.finish();
}

#[test]
fn reading() {
    let mut day = Session::new("read");
    day.prepare("seq 1 30 | logctl append orders-0 --create --timestamp 1700000000000");
    day.prepare("printf 'k1=eins\\nk2=zwei\\nk1=drei\\n' | logctl append orders-0 -K = -H source=shop --timestamp 1700000060000");
    day.prepare("printf 'k2=\\n' | logctl append orders-0 -K = -Z --timestamp 1700000120000");

    day.chapter("from here to there");
    day.run("logctl cat orders-0 -o 28:");
    day.run("logctl cat orders-0 -o -2");
    day.run("logctl cat orders-0 -o start -c 2");
    day.run("logctl cat orders-0 -o @1700000060000: --keys-only");
    day.run("logctl cat orders-0 -o 31: -J");
    day.run("logctl cat orders-0 -o 31:32 -J --pretty");
    day.run("logctl cat orders-0 -o 31: --meta-only -J");
    day.run("logctl cat orders-0 -o 31:32 --batch-meta -J");
    day.run("logctl cat orders-0 -o 30: -f '%o %d{strftime[%F %T]} %k=%v %h{%k:%v }\\n'");
    day.pipe("logctl cat orders-0 -o 31:33 -f '%o %k{hex} %v{base64}\\n'");
    day.run("logctl cat orders-0/00000000000000000000.log -c 1");
    day.run("logctl cat -d . -t orders -p 0 -c 1");

    day.chapter("the last ones");
    day.run("logctl tail orders-0 -n 3");
    day.run("logctl tail orders-0 --since 1700000060000 -J");
    day.run("logctl tail orders-0 -n all --until 1700000060000 --cursor mailer --format '%o '; echo");
    day.run("logctl tail orders-0 --cursor mailer");

    day.chapter("one of them");
    day.run("logctl get orders-0 31");
    day.run("logctl get orders-0 31 -J");
    day.run("logctl get orders-0 33");
    day.run("logctl get orders-0 31 --batch");
    day.run("logctl get orders-0 31 --batch -J");
    day.pipe("logctl get orders-0 31 --raw");
    day.pipe("logctl get orders-0 31 --batch --raw | od -An -tx1 | head -n 2");

    day.chapter("some of them");
    day.run("logctl cat orders-0 --grep '^[ez]'");
    day.run("logctl cat orders-0 --grep zwei --invert-match -c 2");
    day.run("logctl cat orders-0 --where 'key = \"k1\" and value is not null' -J");
    day.run("logctl cat orders-0 --where 'value is null' --meta-only -J");
    day.run("logctl cat orders-0 --where 'value > 28' -f '%o: %v\\n'");
    day.run("logctl cat orders-0 --count-by key");
    day.run("logctl cat orders-0 -o 30: --csv");
    day.run("logctl cat orders-0 -o 30: --csv --columns time,key,header.source");
    day.run("logctl cat orders-0 -o 31:32 --json-style kcat");
    day.run("logctl cat orders-0 -o 30:33 --decode value=hex -f '%v\\n'");
    day.run("logctl cat orders-0 -o 31: -Z");

    day.chapter("what cannot be done");
    day.run("logctl cat orders-0 --grep '('");
    day.run("logctl cat orders-0 --where 'key ='");
    day.run("logctl cat orders-0 --where 'colour = 3'");
    day.run("logctl cat orders-0 --csv --columns when");
    day.run("logctl cat orders-0 --decode value=roman");
    day.run("logctl cat nowhere-0");
    day.run("logctl cat orders-0 -o 99:");
    day.run("logctl cat orders-0 -o 3:1");
    day.run("logctl cat orders-0 -o soon");
    day.run("logctl cat orders-0 -f '%q'");
    day.run("logctl cat orders-0 -o @yesteryear");
    day.run("logctl cat .");
    day.run("logctl cat");
    day.run("logctl cat /etc/hostname");
    day.run("logctl cat -d . -t returns");
    day.run("logctl cat -d . -t orders -p 7");
    day.run("logctl get orders-0 34");
    day.run("logctl get orders-0 minus");
    day.run("logctl tail orders-0 -n some");
    day.run("logctl tail orders-0 -f --until now");
    day.run("logctl reed orders-0");
    day.run("logctl cat orders-0 --offfset 3");
    day.finish();
}
