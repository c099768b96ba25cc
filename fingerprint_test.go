package pawl

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Texts of a row are one kind of error, and no two rows are.
var kindsOfError = [][]string{
	{"", "  ", "\n\t"},
	{"job 1 failed", "job 42 failed", "job 184467440737 failed", "job -7 failed", "job 1,000,000 failed", "job 3.14 failed", "job 6.02e23 failed"},
	{"job one failed"},
	{"order 3f2504e0-4f89-11d3-9a0c-0305e82c3301 not found", "order deadbeef-cafe-abcd-bead-0305e82c3301 not found",
		"order 01ARZ3NDEKTSV4RRFFQ69G5FAV not found", "order 9f86d081884c7d659a2feaa0 not found", "order 0xc0000b4018 not found",
		"order 4b2c9d1 not found", "order abc1234 not found"},
	{"order not found"},
	{"user 01ARZ3NDEKTSV4RRFFQ69G5FAV not found", "user 7 not found"},
	{"customer cus_8f3Kd2 is gone", "customer cus_NffrFeUfNV2Hib is gone", "customer cus_QxYzAbKdWqErTy is gone"},
	{"charge ch_3MtwBwLkdIwHu7ix28a3tqPa is gone", "charge ch_1NirD82eZvKYlo2CIvbtLWuY is gone"},
	{"key sk_live_4eC39HqLyjWDarjtT1zdp7dc is revoked", "key sk_live_51H8x2KqLyjWDarjtT1zdp is revoked"},
	{"token JBSWY3DPEHPK3PXP is bad", "token MFRGGZDFMZTWQ2LK is bad"},
	{"session dGhpcyBpcyBhIHRlc3Q= expired", "session q83vEjRWeJCrze8SNFZ4kA== expired", "session V1StGXR8_Z5jdHi6B-myTzQwEr expired"},
	{"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U: bad signature",
		"jwt eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiI5ODc2In0.Sfl4KxwRJSMeKKF2QT4fwpMeJf36POk6yJVhadQssw5c: bad signature"},
	{"dial tcp 10.0.0.1:5432: connect: connection refused", "dial tcp 192.168.17.203:40112: connect: connection refused",
		"dial tcp [::1]:5432: connect: connection refused", "dial tcp [fe80::1ff:fe23:4567:890a%eth0]:80: connect: connection refused"},
	{"dial tcp 10.0.0.1:5432: i/o timeout", "dial tcp 10.0.0.9:5432: i/o timeout"},
	{"read tcp 10.0.0.1:40112->10.0.0.2:6379: read: connection reset by peer", "read tcp 10.9.0.1:51512->10.0.0.7:6380: read: connection reset by peer"},
	{"write tcp 10.0.0.1:40112->10.0.0.2:6379: write: broken pipe"},
	{"dial tcp: lookup db.internal on 10.0.0.2:53: no such host", "dial tcp: lookup db.internal on 10.0.7.2:53: no such host"},
	{"dial tcp: lookup cache.internal on 10.0.0.2:53: no such host"},
	{"mail to anna@example.com bounced", "mail to b.o.b+x@mail.example.org bounced", "mail to jürgen@bücher.example bounced"},
	{"mail to the list bounced"},
	{"context deadline exceeded", "context  deadline\nexceeded"},
	{"context canceled"},
	{"timed out after 1.5s", "timed out after 30ms", "timed out after 1h2m3.5s", "timed out after 15µs", "timed out after 3 seconds", "timed out after 1 minute"},
	{"timed out after a while"},
	{"body of 10MB is too large", "body of 3.2 GiB is too large", "body of 700 bytes is too large", "body of 12 kB is too large"},
	{"not before 2026-03-04T05:06:07Z", "not before 2026-03-04T05:06:07.123456+02:00", "not before 2026-03-04 05:06:07",
		"not before Wed, 04 Mar 2026 05:06:07", "not before Thu Nov  5 15:04:05 2026"},
	{"not before noon"},
	{"runtime error: index out of range [5] with length 3", "runtime error: index out of range [0] with length 0"},
	{"runtime error: slice bounds out of range [:5] with capacity 3", "runtime error: slice bounds out of range [:12] with capacity 10"},
	{"runtime error: invalid memory address or nil pointer dereference"},
	{"runtime error: integer divide by zero"},
	{"panic: interface conversion: interface {} is string, not int"},
	{"panic: interface conversion: interface {} is nil, not int"},
	{"panic: assignment to entry in nil map"},
	{"fatal: main.go:42: nil map", "fatal: main.go:1042: nil map"},
	{"fatal: worker.go:42: nil map"},
	{"load order 7: scan: sql: no rows in result set", "load order 8: scan: sql: no rows in result set"},
	{"load user 7: scan: sql: no rows in result set"},
	{"sql: transaction has already been committed or rolled back"},
	{`ERROR: duplicate key value violates unique constraint "users_email_key" (SQLSTATE 23505)`},
	{`ERROR: duplicate key value violates unique constraint "users_name_key" (SQLSTATE 23505)`},
	{`ERROR: insert or update on table "orders" violates foreign key constraint "fk_user" (SQLSTATE 23503)`},
	{"ERROR: deadlock detected (SQLSTATE 40P01)", "ERROR: deadlock detected (SQLSTATE 40001)"},
	{"Error 1213 (40001): Deadlock found when trying to get lock; try restarting transaction"},
	{"Error 1062 (23000): Duplicate entry '7' for key 'users.PRIMARY'", "Error 1062 (23000): Duplicate entry '12345' for key 'users.PRIMARY'"},
	{"Error 1062 (23000): Duplicate entry '7' for key 'orders.PRIMARY'"},
	{`Get "https://api.example.com/v1/orders/17?page=2": EOF`, `Get "https://api.example.com/v1/orders/9812?page=31": EOF`},
	{`Post "https://api.example.com/v1/orders/17?page=2": EOF`},
	{`Get "https://api.example.com/v1/users/17?page=2": EOF`},
	{"unexpected status 503 Service Unavailable"},
	{"unexpected status 404 Not Found"},
	{"unexpected status 429 Too Many Requests, retry after 30", "unexpected status 429 Too Many Requests, retry after 7"},
	{"rpc error: code = Unavailable desc = connection to 10.1.2.3:443 lost", "rpc error: code = Unavailable desc = connection to 10.1.2.4:8443 lost"},
	{"rpc error: code = NotFound desc = connection to 10.1.2.3:443 lost"},
	{"json: cannot unmarshal string into Go struct field Order.id of type int64"},
	{"json: cannot unmarshal number into Go struct field Order.name of type string"},
	{"invalid character 'x' looking for beginning of value"},
	{"unexpected end of JSON input"},
	{"open /var/lib/app/17/data.bin: no such file or directory", "open /var/lib/app/23/data.bin: no such file or directory"},
	{"open /var/lib/app/17/data.bin: permission denied"},
	{"x509: certificate has expired or is not yet valid: current time 2026-03-04T05:06:07Z is after 2026-01-01T00:00:00Z",
		"x509: certificate has expired or is not yet valid: current time 2026-11-14T15:16:17Z is after 2026-01-01T00:00:00Z"},
	{"tls: handshake failure"},
	{"pod worker-6d5f7b8c94-x2x4z is gone", "pod worker-7f9cbd5d48-kqzpw is gone"},
	{"host redis-1 is gone", "host redis-12 is gone"},
	{"host postgres-1 is gone"},
	{"bucket s3 said no", "bucket s5 said no"},
	{"failed for ids 1, 2, 3", "failed for ids 17, 4", "failed for ids 9"},
	{"failed for ids [1 2 3]", "failed for ids [17 4]"},
	{"upload: getUserById: denied"},
	{"upload: getOrderById: denied"},
	{"SendFileToUserOfGroup: denied"},
	{"SendMailToUserOfGroup: denied"},
	{"std::bad_alloc"},
	{"std::bad_cast"},
	{"注文 17 が見つかりません", "注文 ４２ が見つかりません"},
	{"注文が見つかりません"},
	{"Größe 5 überschritten", "Größe 12 überschritten"},
	{"bad byte \xff at 5", "bad byte \xff at 17"},
	{"took 3 workers down"},
}

func TestTheFingerprintTellsOneKindOfErrorFromAnother(t *testing.T) {
	t.Parallel()
	rows := map[string]string{}
	for _, row := range kindsOfError {
		first := fingerprint("kind", row[0])
		for _, text := range row {
			if fingerprint("kind", text) != first {
				t.Errorf("these are one kind of error:\n%q\n%q\nbut not their shapes:\n%q\n%q", row[0], text, shape(row[0]), shape(text))
			}
		}
		if other, ok := rows[first]; ok {
			t.Errorf("these are two kinds of error:\n%q\n%q\nbut one shape:\n%q", other, row[0], shape(row[0]))
		}
		rows[first] = row[0]
	}
	require.NotEqual(t, fingerprint("a", "x"), fingerprint("b", "x"))
	require.NotEqual(t, fingerprint("a", "bx"), fingerprint("ab", "x"))
}

// A text is cut at 4 KiB, and so at another word where an id in it is longer.
func TestTheFingerprintOfALongTextThatWasCut(t *testing.T) {
	t.Parallel()
	tail := strings.Repeat("the rest of a very long text, übrigens. ", 200)
	first := fingerprint("k", cut("job 1: "+tail, maxErrorText))
	for _, id := range []string{"22", "333", "4444", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"} {
		require.Equal(t, first, fingerprint("k", cut("job "+id+": "+tail, maxErrorText)))
	}
	require.NotEqual(t, first, fingerprint("k", cut("task 1: "+tail, maxErrorText)))
}

// nasty texts are those that a backtracking or a quadratic reader would suffer of.
var nasty = map[string]string{
	"letters":  strings.Repeat("a", 4096),
	"hex":      strings.Repeat("abcdef", 683),
	"digits":   strings.Repeat("0123456789", 410),
	"colons":   strings.Repeat(":", 4096),
	"ipv6":     strings.Repeat("a:", 2048),
	"mail":     strings.Repeat("a.", 2048) + "@",
	"mails":    strings.Repeat("a@b.", 1024),
	"prefixes": strings.Repeat("ab_", 1365),
	"dashes":   strings.Repeat("bcdfghjk-", 455),
	"words":    strings.Repeat("a1 ", 1365),
	"spaces":   strings.Repeat(" ", 4096),
	"invalid":  strings.Repeat("\xff\xfe", 2048),
	"days":     strings.Repeat("Mon Jan ", 512),
	"mixed":    strings.Repeat("aB3-/", 819),
}

func TestTheFingerprintTakesAnyText(t *testing.T) {
	t.Parallel()
	for name, text := range nasty {
		require.Len(t, fingerprint("k", text), 16, name)
		require.LessOrEqual(t, len(shape(text)), maxShape)
	}
	require.True(t, utf8.ValidString(fingerprint("k", "\xff")))
}

func BenchmarkFingerprint(b *testing.B) {
	texts := map[string]string{"usual": "load order 17: dial tcp 10.0.0.1:5432: connect: connection refused"}
	for name, text := range nasty {
		texts["4 KiB of "+name] = text
	}
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				fingerprint("k", text)
			}
		})
	}
}
