# SPDX-License-Identifier: BSD-2-Clause
for my $n (1 .. 3000) {
	my %h = (a => 1, b => [1, 2, {c => 3}]);
	my @l = sort { $b <=> $a } map { $_ * 2 } grep { $_ % 2 } 1 .. 20;
	my $s = join(",", reverse @l) . sprintf("%05.2f %s %x", 3.14159, "x", 255);
	$s =~ s/(\d+),(\d+)/$2-$1/g;
	my ($x) = $s =~ /(\w+)$/i;
	$s =~ tr/0-9/a-j/;
	my @p = split /-/, $s;
	push @{ $h{b} }, splice(@p, 1, 2);
	delete $h{a};
	my $f = sub { my $y = shift; return wantarray ? @_ : $y };
	my @r = $f->(1, 2);
	local $@;
	eval { die { code => 5 } };
	my $t = substr($s, 1, 3) x 3 . lc(uc $s) . ucfirst("abc");
	keys %h; exists $h{zz}; pack("nN", 1, 2); index($s, "a"); sin(1) ** 2;
	my $o = bless {}, "P";
	$o->m(1);
}
package P;
sub m { return ref($_[0]) }
